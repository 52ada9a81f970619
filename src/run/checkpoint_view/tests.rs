use super::*;
use crate::run::{RunDir, checkpoint::latest_checkpoint, sample};

fn view(run: &RunDir) -> CheckpointView {
    CheckpointView::open(&latest_checkpoint(run).unwrap().unwrap()).unwrap()
}

#[test]
fn every_parameter_is_reported_in_the_models_order_with_its_state() {
    let (_folder, run) = sample::run("view");
    sample::checkpoint(&run, 12);
    let view = view(&run);
    let report = view.report(|_| true).unwrap();
    let ledger = ledger::ledger(&run.config().unwrap());
    assert_eq!((report.update, report.optimizer.as_str()), (12, "adamw"));
    assert_eq!(report.tensors.len() as u64, ledger.parameter_tensors);
    assert_eq!(report.tensors[0].name, "model.embed_tokens.weight");
    assert_eq!(report.tensors.iter().map(TensorState::bytes).sum::<u64>(), ledger.state_bytes);
    assert_eq!(report.tensors.iter().map(TensorState::elements).sum::<u64>(), ledger.state_elements);
    let norm = report.tensors.iter().find(|t| t.name == "model.norm.weight").unwrap();
    assert_eq!((norm.step, &norm.shape[..]), (12, &[64][..]));
    let moment = &norm.state["exp_avg"];
    // Element i of every tensor is i - 1.
    let stats = moment.stats.unwrap();
    assert_eq!((stats.min, stats.max, stats.mean, stats.zeros), (-1.0, 62.0, 30.5, 1));
    assert_eq!((moment.dtype.as_str(), norm.state["step"].shape.len()), ("f32", 0));
}

#[test]
fn one_tensor_opens_into_strips() {
    let (_folder, run) = sample::run("open");
    sample::checkpoint(&run, 3);
    let view = view(&run);
    let detail = view.detail("model.norm.weight", 64).unwrap();
    assert_eq!(detail.strips.len(), 2, "two moments, and no strip of a number");
    assert_eq!((detail.strips[0].name.as_str(), detail.strips[0].values[0]), ("exp_avg", -1.0));
    assert_eq!(
        (detail.histograms.len(), detail.histograms[0].negative, detail.histograms[0].zeros),
        (2, 1, 1)
    );
    let matrix = view.detail("model.embed_tokens.weight", 16).unwrap();
    assert_eq!(matrix.strips.iter().map(|strip| strip.values.len()).collect::<Vec<_>>(), [16; 4]);
    assert_eq!((matrix.strips[0].length, matrix.strips[1].length), (256, 64));
    let text = view.detail("model.nrom.weight", 64).unwrap_err().to_string();
    assert!(text.contains("`model.norm.weight`"), "{text}");
}

#[test]
fn state_of_no_parameter_is_an_error() {
    let (_folder, run) = sample::run("stray");
    sample::checkpoint(&run, 3);
    let checkpoint = latest_checkpoint(&run).unwrap().unwrap();
    std::fs::copy(checkpoint.model(), checkpoint.optimizer()).unwrap();
    let text = CheckpointView::open(&checkpoint).unwrap_err().to_string();
    assert!(text.contains("belongs to no parameter"), "{text}");
}

#[test]
fn codes_are_reported_as_what_they_stand_for_and_shared_state_once() {
    let (_folder, run) = sample::run_with("codes", &["optimizer.name=adamw8bit"]);
    sample::checkpoint(&run, 12);
    let view = view(&run);
    let report = view.report(|_| true).unwrap();
    let ledger = ledger::ledger(&run.config().unwrap());
    assert_eq!((report.bytes(), report.elements()), (ledger.state_bytes, ledger.state_elements));
    assert_eq!(report.shared.keys().collect::<Vec<_>>(), ["qmap1", "qmap2"]);
    assert_eq!((report.shared["qmap1"].bytes, report.shared["qmap1"].shape.len()), (1024, 1));
    // Code c is c modulo 256, the map's element c and the scale of block b are c - 1 and b - 1: 64 x 64 codes are 16
    // blocks, of the first of which every value is 1 - c.
    let name = "model.layers.0.self_attn.q_proj.weight";
    let q_proj = report.tensors.iter().find(|tensor| tensor.name == name).unwrap();
    let state = &q_proj.state["state1"];
    assert_eq!((state.dtype.as_str(), state.elements, state.bytes), ("u8", 4096, 4096));
    let stats = state.stats.unwrap();
    assert_eq!((stats.min, stats.max), (-254.0, 14.0 * 254.0));
    // Zero are the block whose scale is zero, and the code for zero of every other.
    assert_eq!(stats.zeros, 256 + 15);
    assert_eq!(q_proj.state["absmax1"].shape, [16]);
    assert!(q_proj.figures.is_empty(), "codes do not tell which rows were touched");
    let detail = view.detail(name, 64).unwrap();
    let rows = detail.strips.iter().find(|strip| strip.name == "state1").unwrap();
    // A row of 64 is a quarter of a block; the first is the mean of |1 - c| for c in 0..64.
    assert!((rows.values[0] - (1.0 + 62.0 * 63.0 / 2.0) / 64.0).abs() < 1e-9, "{:?}", rows.values[0]);
    assert_eq!((rows.values.len(), rows.values[4]), (64, 0.0));
    let histogram = detail.histograms.iter().find(|histogram| histogram.name == "state1").unwrap();
    assert_eq!((histogram.total(), histogram.zeros), (4096, 256 + 15));
    let codes = &detail.codes[0];
    assert_eq!(
        (codes.name.as_str(), codes.elements, codes.blocks, codes.empty_blocks),
        ("state1", 4096, 16, 1)
    );
    // Every code occurs 16 times; the map begins below zero, so both ends are.
    assert_eq!((codes.at_ends, codes.at_zero, codes.used), (32, 16, 256));
    assert_eq!((codes.smallest_scale, codes.largest_scale), (1.0, 14.0));
    assert!(detail.reconstructed.is_none());
}

#[test]
fn scales_that_do_not_fit_the_codes_are_told() {
    let (_folder, run) = sample::run_with("scales", &["optimizer.name=adamw8bit"]);
    sample::checkpoint(&run, 1);
    let mut view = view(&run);
    view.config.optimizer.adamw8bit.blocksize = 128;
    let text = view.report(|_| true).unwrap_err().to_string();
    assert!(text.contains("absmax") && text.contains("blocks of 128"), "{text}");
}

#[test]
fn a_factored_second_moment_is_put_together_again() {
    let (_folder, run) = sample::run_with("factored", &["optimizer.name=adafactor"]);
    sample::checkpoint(&run, 3);
    let view = view(&run);
    let detail = view.detail("model.embed_tokens.weight", 64).unwrap();
    let heat = detail.reconstructed.unwrap();
    assert_eq!((heat.shape, heat.rows, heat.columns), ([256, 64], 32, 64));
    // Element i of either factor is i - 1: the mean of the rows is 126.5, that of the first 8 is 2.5.
    assert!((heat.values[3] - 2.5 / 126.5 * 2.0).abs() < 1e-12);
    // Rows -1 and 0 are not above the first eps.
    assert_eq!(detail.tensor.figures[figures::ROWS_NEVER_TOUCHED], 2.0);
    let norm = view.detail("model.norm.weight", 64).unwrap();
    assert!(norm.reconstructed.is_none() && norm.tensor.figures.is_empty());
}

#[test]
fn rows_are_counted_for_every_matrix_and_for_nothing_else() {
    let (_folder, run) = sample::run("rows");
    sample::checkpoint(&run, 3);
    let report = view(&run).report(|_| true).unwrap();
    let matrices = report.tensors.iter().filter(|tensor| tensor.shape.len() == 2);
    // Every row has an element above zero.
    assert!(matrices.clone().count() > 5);
    assert!(matrices.clone().all(|tensor| tensor.figures[figures::ROWS_NEVER_TOUCHED] == 0.0));
    assert!(report.tensors.iter().all(|t| t.shape.len() == 2 || t.figures.is_empty()));
}
