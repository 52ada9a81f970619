//! What `auto` comes to on this machine: the draft is counted for the device that it would train on.

use super::Form;
use crate::{config::DeviceName, ledger};

impl Form {
    /// Takes the device that `auto` comes to.
    pub fn auto_is(&mut self, device: DeviceName) {
        if self.auto.replace(device) != Some(device) {
            self.ledgers = ledger::all_where(&self.resolved.config, self.auto);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    #[test]
    fn the_plan_of_a_draft_is_that_of_the_run_that_it_starts() {
        let mut form = Form::new(Layers::new()).unwrap();
        let of = |form: &Form, device| {
            let mut config = form.resolved.config.clone();
            config.train.device = device;
            ledger::all(&config)
        };
        assert_eq!(form.ledgers, of(&form, DeviceName::Flex), "until it is known");
        form.auto_is(DeviceName::LibtorchCpu);
        let expected = of(&form, DeviceName::LibtorchCpu);
        assert!(form.ledgers == expected && expected != of(&form, DeviceName::Flex));
        form.assign("train.micro_batch", "16").unwrap();
        assert_eq!(form.ledgers, of(&form, DeviceName::LibtorchCpu), "and so it is of every later draft");
        form.replace(&[("train.accumulate".to_owned(), "4".to_owned())].into()).unwrap();
        assert_eq!(form.resolved.config.train.accumulate, 4);
        assert_eq!(form.ledgers, of(&form, DeviceName::LibtorchCpu));
        form.assign("train.device", "flex").unwrap();
        assert_eq!(form.ledgers, of(&form, DeviceName::Flex), "a device that was named stays");
    }
}
