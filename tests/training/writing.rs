//! What a language model writes is what its logits say.

use tui_train::{
    config::Layers,
    data::Dataset,
    model::{TrainModel, llama::Llama},
    worker::{trainer, writing::Request},
};

#[test]
fn the_likeliest_token_of_the_last_place_is_written_first() {
    for more in ["model.tie_word_embeddings=true", "model.tie_word_embeddings=false"] {
        let layers = Layers::new().with_assignments([more, "train.seq_len=24"]).unwrap();
        let config = layers.resolve().unwrap().config;
        let device = crate::support::device();
        let batch = Dataset::open(&config).unwrap().batch(&[3]);
        let model = Llama::init(&config, &device);
        let all: Vec<f32> = model.forward(&batch).into_data().iter().collect();
        let last: Vec<f32> = model.next_token(&batch).unwrap().into_data().iter().collect();
        assert_eq!(last.len(), 256);
        for (ours, theirs) in last.iter().zip(&all[23 * 256..]) {
            assert!((ours - theirs).abs() < 1e-5, "{ours} and {theirs}");
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
