//! What a language model writes is what its logits say.

use tui_train::{
    config::Layers,
    data::{Batch, Dataset},
    model::{Seen, TrainModel, llama::Llama},
    worker::{trainer, writing::Request},
};

/// Some places of a row.
fn part(batch: &Batch, from: usize, places: usize) -> Batch {
    let range = from..from + places;
    Batch {
        rows: 1,
        seq_len: places,
        inputs: batch.inputs[range.clone()].to_vec(),
        targets: batch.targets[range].to_vec(),
        lengths: vec![places],
        target_count: 0,
        own: None,
    }
}

#[test]
fn the_likeliest_token_of_the_last_place_is_written_first() {
    for more in ["model.tie_word_embeddings=true", "model.tie_word_embeddings=false"] {
        let layers = Layers::new().with_assignments([more, "train.seq_len=24"]).unwrap();
        let config = layers.resolve().unwrap().config;
        let device = crate::support::device();
        let batch = Dataset::open(&config).unwrap().batch(&[3]);
        let model = Llama::init(&config, &device);
        let all: Vec<f32> = model.forward(&batch).into_data().iter().collect();
        // However the row is cut, what comes of its last place is what comes of the row at once.
        for cuts in [&[24][..], &[8, 1, 1, 1, 13], &[1, 22, 1]] {
            let (mut seen, mut at) = (Seen::default(), 0);
            for &places in cuts {
                let part = part(&batch, at, places);
                at += places;
                let last: Vec<f32> = model.next_token(&part, &mut seen).unwrap().into_data().iter().collect();
                assert_eq!((last.len(), seen.places()), (256, at));
                for (ours, theirs) in last.iter().zip(&all[(at - 1) * 256..]) {
                    assert!((ours - theirs).abs() < 1e-5, "{cuts:?}, place {at}: {ours} and {theirs}");
                }
            }
        }

        let training = trainer::build(&config, &device).unwrap();
        let request = |tokens| Request {
            prompt: batch.inputs[..8].to_vec(),
            tokens,
            temperatures: vec![0.0, 0.0],
            seed: 1,
            update: 1,
        };
        let rows = training.write_text(&request(16)).unwrap();
        assert_eq!((rows[0].len(), &rows[0]), (16, &rows[1]));
        // What is written first does not depend on how much is.
        assert_eq!(rows[0][..5], training.write_text(&request(5)).unwrap()[0][..]);
    }
}
