//! The memory that a run on some device would find.

use crate::{app::room::Room, config::DeviceName, run::libtorch};

/// The device that a name comes to, and its memory now. Takes seconds where libtorch has to be asked.
pub fn of(device: DeviceName, gpu: fn(DeviceName) -> Option<Room>) -> (DeviceName, Option<Room>) {
    let device = match device {
        DeviceName::Auto => libtorch::choose(device).map_or(DeviceName::Flex, |chosen| chosen.device),
        named => named,
    };
    match device {
        DeviceName::LibtorchCuda(_) => (device, gpu(device)),
        _ => (device, of_host()),
    }
}

/// The memory of this machine or of the container it runs in, if the operating system says.
pub fn of_host() -> Option<Room> {
    let mut system = sysinfo::System::new().ok()?;
    system.refresh_memory();
    let room = |total: u64, free: u64| (total > 0).then_some(Room { total, free: free.min(total) });
    let machine = room(system.total_memory(), system.available_memory());
    let limits = system.cgroup_limits().and_then(|limits| room(limits.total_memory, limits.free_memory));
    // A container may have less than the machine.
    match (machine, limits) {
        (Some(machine), Some(limits)) => {
            Some(Room { total: machine.total.min(limits.total), free: machine.free.min(limits.free) })
        }
        (machine, limits) => machine.or(limits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_has_the_machines_memory_and_a_gpu_its_own() {
        let own = Room { total: 9, free: 4 };
        let cuda = DeviceName::LibtorchCuda(0);
        assert_eq!(of(cuda, |_| Some(Room { total: 9, free: 4 })), (cuda, Some(own)));
        assert_eq!(of(cuda, |_| None), (cuda, None), "nobody says: nothing is made up");
        let (device, room) = of(DeviceName::Flex, |_| None);
        let room = room.unwrap();
        assert_eq!(device, DeviceName::Flex);
        assert!(room.free > 0 && room.free <= room.total);
    }
}
