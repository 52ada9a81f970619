//! Which of the driver's GPUs are CUDA's devices 0, 1, ...: CUDA counts what `CUDA_VISIBLE_DEVICES` leaves, in an order
//! of its own, and NVML counts all by their place on the bus.

/// One GPU as the driver lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    pub uuid: String,
    /// Divided into instances (MIG): then only those can be used.
    pub divided: bool,
    /// UUIDs of the instances.
    pub instances: Vec<String>,
}

impl Listed {
    /// UUIDs of what can be used of it.
    pub fn devices(self) -> Vec<String> {
        if self.divided { self.instances } else { vec![self.uuid] }
    }
}

/// What the environment says about CUDA's devices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mask {
    /// `CUDA_VISIBLE_DEVICES`.
    pub devices: Option<String>,
    /// `CUDA_DEVICE_ORDER=PCI_BUS_ID`: as NVML counts, and not the fastest first.
    pub bus_order: bool,
}

impl Mask {
    /// That of this process.
    pub fn from_env() -> Self {
        Self {
            devices: std::env::var("CUDA_VISIBLE_DEVICES").ok(),
            bus_order: std::env::var("CUDA_DEVICE_ORDER").is_ok_and(|order| order == "PCI_BUS_ID"),
        }
    }

    /// What it hides things by, to end a sentence with; nothing without a mask.
    pub fn words(&self) -> String {
        self.devices.as_ref().map_or_else(String::new, |mask| format!(" (CUDA_VISIBLE_DEVICES = \"{mask}\")"))
    }
}

/// A device as CUDA counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen<'a> {
    pub name: &'a str,
    /// Of the GPU, or of its instance.
    pub uuid: &'a str,
    /// The environment leaves the order open, so that it may be another.
    pub assumed: bool,
    instance: bool,
}

/// CUDA's devices in CUDA's order. As CUDA reads its mask: an entry that names nothing hides those after it, indices and
/// UUIDs do not mix, a device named twice leaves none, and a process has one instance of a divided GPU at most.
pub fn visible<'a>(mask: &Mask, gpus: &'a [Listed]) -> Vec<Seen<'a>> {
    let counted = counted(mask.bus_order, gpus);
    let Some(text) = &mask.devices else { return one_instance(counted) };
    let by_uuid = starts_uuid(text.trim_start());
    let mut seen: Vec<Seen<'a>> = Vec::new();
    for entry in text.split(',').map(str::trim) {
        if starts_uuid(entry) != by_uuid {
            break;
        }
        let found =
            if by_uuid { named(entry, gpus) } else { index(entry).and_then(|at| counted.get(at).copied()) };
        let Some(device) = found else { break };
        if seen.iter().any(|earlier| earlier.uuid == device.uuid) {
            return Vec::new();
        }
        seen.push(device);
    }
    one_instance(seen)
}

/// All, as they are counted without a mask.
fn counted(bus_order: bool, gpus: &[Listed]) -> Vec<Seen<'_>> {
    let open = gpus.len() > 1 && (!bus_order || gpus.iter().any(|gpu| gpu.divided));
    let devices = gpus.iter().filter_map(|gpu| {
        let uuid = if gpu.divided { gpu.instances.first()? } else { &gpu.uuid };
        let assumed = open || gpu.instances.len() > 1;
        Some(Seen { name: &gpu.name, uuid, assumed, instance: gpu.divided })
    });
    devices.collect()
}

/// The device that a UUID or its beginning names, when it is one alone.
fn named<'a>(start: &str, gpus: &'a [Listed]) -> Option<Seen<'a>> {
    let seen = |name, uuid, instance| Seen { name, uuid, assumed: false, instance };
    let mut found = gpus
        .iter()
        .flat_map(|gpu| {
            // A divided GPU may be named itself and stands for its first instance.
            let whole = (gpu.uuid.starts_with(start)).then(|| match gpu.instances.first() {
                Some(first) if gpu.divided => {
                    Some(Seen { assumed: gpu.instances.len() > 1, ..seen(&*gpu.name, &**first, true) })
                }
                _ if gpu.divided => None,
                _ => Some(seen(&*gpu.name, &*gpu.uuid, false)),
            });
            let parts = gpu.instances.iter().filter(|uuid| uuid.starts_with(start));
            whole.flatten().into_iter().chain(parts.map(|uuid| seen(&*gpu.name, &**uuid, true)))
        })
        .collect::<Vec<_>>()
        .into_iter();
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

fn one_instance(seen: Vec<Seen<'_>>) -> Vec<Seen<'_>> {
    let mut taken = false;
    seen.into_iter().filter(|device| !device.instance || !std::mem::replace(&mut taken, true)).collect()
}

fn starts_uuid(entry: &str) -> bool {
    entry.starts_with("GPU-") || entry.starts_with("MIG-")
}

/// The number an entry begins with; what follows it does not count.
fn index(entry: &str) -> Option<usize> {
    let digits = entry.strip_prefix('+').unwrap_or(entry);
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(name: &str, uuid: &str) -> Listed {
        Listed { name: name.into(), uuid: uuid.into(), divided: false, instances: Vec::new() }
    }

    fn divided(uuid: &str, instances: &[&str]) -> Listed {
        let instances = instances.iter().map(|&uuid| uuid.to_owned()).collect();
        Listed { divided: true, instances, ..gpu("divided", uuid) }
    }

    fn three() -> Vec<Listed> {
        vec![gpu("a", "GPU-8932f937-d72c"), gpu("b", "GPU-8932aaaa-0000"), gpu("c", "GPU-11112222-3333")]
    }

    /// The names that this mask leaves, in order, by the bus.
    fn left(mask: &str, gpus: &[Listed]) -> String {
        let mask = Mask { devices: Some(mask.into()), bus_order: true };
        visible(&mask, gpus).iter().map(|seen| seen.name).collect()
    }

    #[test]
    fn indices_choose_and_order_and_a_wrong_one_hides_the_rest() {
        let gpus = three();
        for (mask, names) in [
            ("0", "a"),
            ("2,0", "ca"),
            (" 1 , 2 ", "bc"),
            ("0,-1,2", "a"),
            ("-1", ""),
            ("", ""),
            ("1,7,0", "b"),
            ("none", ""),
            ("0,,2", "a"),
            ("1gpu,+2", "bc"),
            ("0,1,0", ""),
            ("99999999999999999999999", ""),
        ] {
            assert_eq!(left(mask, &gpus), names, "{mask}");
        }
    }

    #[test]
    fn uuids_may_be_cut_short_while_they_name_one() {
        let gpus = three();
        for (mask, names) in [
            ("GPU-8932f937-d72c", "a"),
            ("GPU-8932f", "a"),
            ("GPU-1", "c"),
            ("GPU-8932", ""),
            ("GPU-1,GPU-8932a", "cb"),
            ("GPU-1,GPU-ffff,GPU-8932a", "c"),
            ("GPU-1,0", "c"),
            ("0,GPU-1", "a"),
            ("GPU-1,GPU-1111", ""),
        ] {
            assert_eq!(left(mask, &gpus), names, "{mask}");
        }
    }

    #[test]
    fn only_the_order_on_the_bus_or_a_uuid_is_certain() {
        let gpus = three();
        let assumed = |devices: Option<&str>, bus_order| {
            let mask = Mask { devices: devices.map(str::to_owned), bus_order };
            visible(&mask, &gpus).iter().any(|seen| seen.assumed)
        };
        assert!(assumed(None, false) && assumed(Some("1"), false));
        assert!(!assumed(None, true) && !assumed(Some("1"), true) && !assumed(Some("GPU-1"), false));
        let alone = [gpu("a", "GPU-1")];
        assert!(!visible(&Mask::default(), &alone)[0].assumed, "one GPU has one order");
    }

    #[test]
    fn of_a_divided_gpu_there_is_one_instance() {
        let gpus = [gpu("whole", "GPU-1"), divided("GPU-2", &["MIG-a1", "MIG-a2"]), divided("GPU-3", &[])];
        let uuids = |devices: Option<&str>| -> Vec<&str> {
            let mask = Mask { devices: devices.map(str::to_owned), bus_order: true };
            visible(&mask, &gpus).iter().map(|seen| seen.uuid).collect()
        };
        assert_eq!(uuids(None), ["GPU-1", "MIG-a1"]);
        assert_eq!(uuids(Some("MIG-a2")), ["MIG-a2"]);
        assert_eq!(uuids(Some("MIG-a2,MIG-a1")), ["MIG-a2"]);
        assert_eq!(uuids(Some("GPU-2")), ["MIG-a1"]);
        assert!(uuids(Some("MIG-a")).is_empty(), "names two");
        assert!(uuids(Some("GPU-3")).is_empty(), "has no instance");
        let mask = Mask { devices: Some("MIG-a2".into()), bus_order: false };
        assert!(!visible(&mask, &gpus)[0].assumed, "an instance by its UUID is certain");
    }
}
