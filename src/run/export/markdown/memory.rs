//! The ledger and what was measured, in one table.

use crate::{
    config::Arch,
    protocol::Summary,
    run::{
        table::Table,
        text::{bytes, dash},
    },
};

/// The ledger beside what was measured, also used by `show`. Estimates carry `~`.
pub fn memory(summary: &Summary) -> Table {
    let (ledger, measured) = (&summary.ledger, &summary.measured);
    let mut table = Table::new(&["memory", ">ledger", ">measured", ">deviation", "source"]);
    let mut row = |name: &str, planned: Option<(u64, bool)>, found: Option<u64>, source: &str| {
        let told = planned.map_or_else(
            dash,
            |(size, exact)| {
                if exact { bytes(size) } else { format!("~{}", bytes(size)) }
            },
        );
        let deviation = planned.zip(found).map_or_else(dash, |((size, _), found)| deviation(size, found));
        table.row([name.to_owned(), told, found.map_or_else(dash, bytes), deviation, source.to_owned()]);
    };
    // A loop of its own tells its parameters and its state, or does not: nothing is counted for it.
    let loops = summary.config.model.arch == Arch::Loop;
    let told = |bytes: u64| if loops { Some(bytes).filter(|&bytes| bytes > 0) } else { Some(bytes) };
    let counted = |bytes: u64| (!loops).then_some((bytes, true));
    let source = if loops { "as the loop told" } else { "tensors" };
    let parameters = told(ledger.parameter_bytes).map(|bytes| (bytes, true));
    // Of a loop's parameters the shapes alone are known.
    let of_tensors = (!loops).then_some(measured.parameter_bytes);
    row("parameters", parameters, of_tensors, source);
    row("gradients", counted(ledger.gradient_bytes), None, "");
    if ledger.accumulation_bytes > 0 {
        row("accumulation buffer", Some((ledger.accumulation_bytes, true)), None, "");
    }
    row("optimizer state", counted(ledger.state_bytes), told(measured.state_bytes), source);
    // Nothing is known of those of a model that is not built in.
    let activations = Some(ledger.activation_bytes_estimated).filter(|&bytes| bytes > 0);
    row("activations", activations.map(|bytes| (bytes, false)), None, "");
    let baseline = measured.baseline_bytes.unwrap_or_default();
    // On a GPU the worker's own allocator has the text and no tensor.
    let (peak, source) = match measured.peak_gpu_allocated_bytes {
        Some(peak) => (Some(peak), "libtorch's allocator"),
        None => (
            measured.peak_allocator_bytes.map(|peak| peak.saturating_sub(baseline)),
            "allocator of the worker",
        ),
    };
    // While a run is live nobody knows yet what of its peak was there before the model.
    let whole = measured.baseline_bytes.is_none() && measured.peak_gpu_allocated_bytes.is_none();
    let total = activations.map(|_| (ledger.total_bytes_estimated, false));
    if whole {
        row("total", total, None, "");
        row("peak, with text and program", None, peak, source);
    } else {
        row("peak of training", total, peak, source);
    }
    if measured.baseline_bytes.is_some() {
        row("text and program", None, measured.baseline_bytes, "allocator before the model was made");
    }
    for (name, found, source) in [
        ("peak, resident", measured.peak_host_rss, "operating system"),
        ("peak, GPU pool", measured.peak_gpu_reserved_bytes, "libtorch's allocator"),
        ("peak, GPU process", measured.peak_gpu_process_bytes, "NVML"),
        ("peak, GPU device", measured.peak_gpu_device_bytes, "NVML"),
    ] {
        if found.is_some() {
            row(name, None, found, source);
        }
    }
    table
}

fn deviation(planned: u64, found: u64) -> String {
    if planned == found {
        return "0".to_owned();
    }
    if planned == 0 {
        return format!("+{}", bytes(found));
    }
    format!("{:+.1} %", 100.0 * (found as f64 - planned as f64) / planned as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_are_told_in_percent() {
        assert_eq!(
            (deviation(100, 100), deviation(100, 110), deviation(0, 1024)),
            ("0".into(), "+10.0 %".into(), "+1.00 KiB".into())
        );
    }
}
