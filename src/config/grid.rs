//! A grid: the product of some settings, each combination the draft of one run.

use super::{ConfigError, Layers, Resolved};

/// Most runs of one grid: more is a slip of the hand.
pub const MOST_RUNS: usize = 1000;

/// One run of a grid.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub resolved: Resolved,
    /// The name of the run: the grid's own and the values that make this run.
    pub name: String,
    /// What makes this run, as `key=value, key=value`.
    pub combination: String,
}

/// One key and the values it takes.
type Axis = (String, Vec<String>);

/// Resolves every combination of `key=a,b` on top of the layers, the last key changing fastest. `name` stands before
/// what each run is called; without one that is its model.
///
/// # Errors
/// The sentence of the first combination that cannot be used, and which one that is.
pub fn resolve(base: &Layers, texts: &[String], name: Option<&str>) -> Result<Vec<Member>, ConfigError> {
    let axes = texts.iter().map(|text| axis(text)).collect::<Result<Vec<_>, _>>()?;
    for (at, (key, _)) in axes.iter().enumerate() {
        if axes[..at].iter().any(|(other, _)| other == key) {
            return Err(ConfigError::Conflict(format!(
                "{key} is in the grid twice: write all its values after one {key}="
            )));
        }
    }
    let runs = axes.iter().try_fold(1_usize, |runs, (_, values)| runs.checked_mul(values.len()));
    if runs.is_none_or(|runs| runs > MOST_RUNS) {
        return Err(ConfigError::Conflict(format!(
            "the grid has more than {MOST_RUNS} runs: leave out some of its values"
        )));
    }
    combinations(&axes).into_iter().map(|chosen| member(base, &chosen, name)).collect()
}

fn member(base: &Layers, chosen: &[(&str, &str)], name: Option<&str>) -> Result<Member, ConfigError> {
    let assignments: Vec<String> = chosen.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let combination = assignments.join(", ");
    let layers = base.clone().with_assignments_of("grid", &assignments);
    let resolved = layers.and_then(|layers| layers.resolve()).map_err(|error| ConfigError::InGrid {
        combination: combination.clone(),
        problem: error.to_string(),
    })?;
    let words = chosen.iter().map(|(key, value)| match *key {
        // What these are set to says what they are.
        "optimizer.name" | "model.preset" => (*value).to_owned(),
        key => format!("{}={value}", key.rsplit('.').next().unwrap_or(key)),
    });
    let first = name.unwrap_or_else(|| resolved.config.model.name()).to_owned();
    let named = chosen.iter().any(|(key, _)| *key == "model.preset") && name.is_none();
    let words: Vec<String> = (!named).then_some(first).into_iter().chain(words).collect();
    Ok(Member { resolved, name: words.join(" "), combination })
}

/// `key=a,b`; a comma inside brackets belongs to the value.
fn axis(text: &str) -> Result<Axis, ConfigError> {
    let wrong = |what: &str| {
        ConfigError::Conflict(format!(
            "{text} {what}: write a key and its values, for example optimizer.name=adamw,adafactor"
        ))
    };
    let (key, list) = text.split_once('=').ok_or_else(|| wrong("is no part of a grid"))?;
    let (mut values, mut depth) = (vec![String::new()], 0_i32);
    for letter in list.chars() {
        match letter {
            ',' if depth == 0 => {
                values.push(String::new());
                continue;
            }
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if let Some(value) = values.last_mut() {
            value.push(letter);
        }
    }
    let values: Vec<String> = values.iter().map(|value| value.trim().to_owned()).collect();
    if key.trim().is_empty() || values.iter().any(String::is_empty) {
        return Err(wrong("has an empty place"));
    }
    for (at, value) in values.iter().enumerate() {
        if values[..at].contains(value) {
            return Err(wrong(&format!("names {value} twice")));
        }
    }
    Ok((key.trim().to_owned(), values))
}

fn combinations(axes: &[Axis]) -> Vec<Vec<(&str, &str)>> {
    let mut all: Vec<Vec<(&str, &str)>> = vec![Vec::new()];
    for (key, values) in axes {
        let longer = |chosen: &Vec<(_, _)>, value| {
            let mut chosen = chosen.clone();
            chosen.push((key.as_str(), value));
            chosen
        };
        all = all
            .iter()
            .flat_map(|chosen| values.iter().map(move |value| longer(chosen, value.as_str())))
            .collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(texts: &[&str], name: Option<&str>) -> Result<Vec<Member>, ConfigError> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        resolve(&Layers::new(), &texts, name)
    }

    #[test]
    fn a_grid_is_the_product_with_the_last_key_fastest() {
        let made = grid(&["optimizer.name=adamw, adafactor", "train.accumulate=1,4"], None).unwrap();
        let names: Vec<_> = made.iter().map(|member| member.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "llama-nano adamw accumulate=1",
                "llama-nano adamw accumulate=4",
                "llama-nano adafactor accumulate=1",
                "llama-nano adafactor accumulate=4"
            ]
        );
        assert_eq!(made[3].combination, "optimizer.name=adafactor, train.accumulate=4");
        assert_eq!(made[1].resolved.config.train.accumulate, 4);
        assert_eq!(made[2].resolved.config.optimizer.name.to_string(), "adafactor");
        let seeds: Vec<_> = made.iter().map(|member| member.resolved.config.train.seed).collect();
        assert_eq!(seeds, [1; 4], "the same start and the same data");
        let named = grid(&["train.seed=1,2"], Some("mine")).unwrap();
        assert_eq!((named[1].name.as_str(), named[1].resolved.config.train.seed), ("mine seed=2", 2));
    }

    #[test]
    fn a_comma_inside_brackets_belongs_to_the_value() {
        let made = grid(&["optimizer.adamw.betas=[0.9,0.95],[0.8, 0.99]"], None).unwrap();
        assert_eq!(made.len(), 2);
        assert_eq!(made[1].combination, "optimizer.adamw.betas=[0.8, 0.99]");
    }

    #[test]
    fn the_first_wrong_combination_is_told() {
        let told = grid(&["optimizer.name=adamw,sgd", "optimizer.alpha=1"], None).unwrap_err().to_string();
        assert!(told.starts_with("in the grid at optimizer.name=adamw, optimizer.alpha=1: "), "{told}");
        for (wrong, word) in [
            ("train.accumulate", "no part"),
            ("train.accumulate=1,,2", "empty"),
            ("train.accumulate=", "empty"),
            ("=1", "empty"),
            ("train.accumulate=2,2", "2 twice"),
            ("train.accumulate=2,many", "many"),
            ("train.seed=[1,2", "[1,2"),
        ] {
            let told = grid(&[wrong], None).unwrap_err().to_string();
            assert!(told.contains(word), "{wrong}: {told}");
        }
        let told = grid(&["train.accumulate=2,many"], None).unwrap_err().to_string();
        assert!(told.contains("(grid)") && !told.contains("--set"), "it stands where it was written: {told}");
        let told = grid(&["train.seed=1,2", "train.seed=3"], None).unwrap_err().to_string();
        assert!(told.contains("twice"), "{told}");
    }

    #[test]
    fn a_grid_that_nobody_can_have_meant_is_refused_before_it_is_made() {
        let many = (1..=40).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let axes = [format!("train.seed={many}"), format!("train.accumulate={many}")];
        let told = resolve(&Layers::new(), &axes, None).unwrap_err().to_string();
        assert!(told.contains("more than 1000"), "{told}");
    }
}
