//! What a program brings along besides the models of this one: the name of its task, its settings, and the shapes of
//! its model. One task a program; without one there is nothing here.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use serde::{Deserialize, Serialize};
use toml::Value;

use super::{
    Arch, Config, ConfigError, Layers,
    fields::{self, FIELDS, Field},
    presets::{self, Preset},
};

/// The section that holds the settings of a task.
pub const SECTION: &str = "task";

/// One parameter of a model whose shapes no other setting tells: its name and its shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    pub name: String,
    pub shape: Vec<usize>,
}

/// The task that this program was given.
#[derive(Debug)]
pub struct Registered {
    /// Its name and what its settings start from, which choose it like any other preset.
    pub preset: Preset,
    /// What may be set under `[task]`.
    pub settings: &'static [Field],
    /// The parameters of its model with these settings, or what is wrong with it in one sentence.
    pub shapes: fn(&Config) -> Result<Vec<Parameter>, String>,
}

static REGISTERED: OnceLock<Registered> = OnceLock::new();
/// Shapes by settings: the form asks at every key, and a model may take its time.
static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

/// The settings of a task, and the shapes that its model has with them.
type Known = (BTreeMap<String, Value>, Vec<Parameter>);

/// Gives this program its task, before anything is read.
///
/// # Errors
/// There is one already, or its name, its settings or its defaults cannot be used.
pub fn register(task: Registered) -> Result<(), ConfigError> {
    check(&task)?;
    let name = task.preset.name;
    REGISTERED.set(task).map_err(|_| {
        ConfigError::Conflict(format!("the task `{name}` is a second one: a program has one task"))
    })?;
    // What the task starts from is read like a file, once its own keys are known.
    let defaults = Layers::new().with_toml(presets::find(name).map_or("", |preset| preset.text), name)?;
    match defaults.keys().find(|key| !fields::applies(key, Arch::Own)) {
        Some(key) => Err(ConfigError::Conflict(format!(
            "the defaults of the task `{name}` set {key}, which has no effect on it: remove it"
        ))),
        None => Ok(()),
    }
}

fn check(task: &Registered) -> Result<(), ConfigError> {
    let name = task.preset.name;
    let wrong = |what: String| Err(ConfigError::Conflict(format!("the task `{name}` {what}")));
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) {
        return wrong("needs a name of letters, digits, `-`, `_` and `.`".to_owned());
    }
    if presets::PRESETS.iter().any(|preset| preset.name == name) {
        return wrong("has the name of a built-in preset: give it another".to_owned());
    }
    let mut seen = BTreeSet::new();
    for field in task.settings {
        let own = field.key.strip_prefix("task.").filter(|key| !key.is_empty() && !key.contains('.'));
        if own.is_none() {
            return wrong(format!("has a setting called `{}`: call it task.NAME", field.key));
        }
        if !seen.insert(field.key) {
            return wrong(format!("has two settings called `{}`: rename one", field.key));
        }
        let value = format!("v = {}", field.default).parse::<toml::Table>().ok();
        if !value.and_then(|table| table.get("v").map(|value| field.kind.accepts(value))).unwrap_or(false) {
            return wrong(format!(
                "has {} = {} by default, where {} is due",
                field.key,
                field.default,
                field.kind.expected()
            ));
        }
    }
    Ok(())
}

/// The task of this program, if it has one.
pub fn registered() -> Option<&'static Registered> {
    REGISTERED.get()
}

/// Its settings; none without a task.
pub fn settings() -> &'static [Field] {
    registered().map_or(&[], |task| task.settings)
}

/// Whether that name is the task's.
pub fn is_task(name: &str) -> bool {
    registered().is_some_and(|task| task.preset.name == name)
}

static WITHOUT_COMMANDS: AtomicBool = AtomicBool::new(false);

/// Says that this program takes no commands, and is not to be started to train a run.
pub fn without_commands() {
    WITHOUT_COMMANDS.store(true, Relaxed);
}

/// What is started to train a run: this program, or where it takes no commands, the one on PATH that does.
pub fn worker_program() -> PathBuf {
    let this = if WITHOUT_COMMANDS.load(Relaxed) { None } else { std::env::current_exe().ok() };
    this.unwrap_or_else(|| PathBuf::from("tui-train"))
}

/// What people type to start this program: a program with a task of its own has a name of its own.
pub fn program() -> &'static str {
    const OURS: &str = "tui-train";
    static THEIRS: OnceLock<String> = OnceLock::new();
    if registered().is_none() {
        return OURS;
    }
    THEIRS.get_or_init(|| {
        let path = std::env::args_os().next().map(PathBuf::from);
        path.and_then(|path| Some(path.file_name()?.to_str()?.to_owned())).unwrap_or_else(|| OURS.to_owned())
    })
}

/// Enters the shapes of the task's model, where the configuration is one of the task.
///
/// # Errors
/// This program does not have that task, or its model cannot be made.
pub(super) fn complete(config: &mut Config) -> Result<(), ConfigError> {
    match config.model.arch {
        Arch::Own => {
            present(config)?;
            config.model.parameters = shapes(config)?;
            // An example counts as one token.
            config.train.seq_len = 1;
            Ok(())
        }
        Arch::Loop => Err(its_own_loop(config)),
        _ => Ok(()),
    }
}

/// Whether this program has the task of that configuration, where it is one of a task.
///
/// # Errors
/// It has another one, or none.
pub fn present(config: &Config) -> Result<(), ConfigError> {
    match config.model.arch {
        Arch::Own if !is_task(config.model.name()) => Err(ConfigError::Conflict(format!(
            "this program does not have the task `{}`: use the program that does, it takes the same commands",
            config.model.name()
        ))),
        Arch::Loop => Err(its_own_loop(config)),
        _ => Ok(()),
    }
}

fn its_own_loop(config: &Config) -> ConfigError {
    ConfigError::Conflict(format!(
        "`{}` was trained by a loop of its own, which this program cannot go on with: start that program again",
        config.model.name()
    ))
}

fn shapes(config: &Config) -> Result<Vec<Parameter>, ConfigError> {
    let Some(task) = registered() else { return Ok(Vec::new()) };
    let mut known = KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some((_, parameters)) = known.as_ref().filter(|(settings, _)| *settings == config.task) {
        return Ok(parameters.clone());
    }
    let parameters = (task.shapes)(config)
        .and_then(|parameters| distinct(&parameters).map(|()| parameters))
        .map_err(|problem| {
            ConfigError::Conflict(format!("the model of the task `{}` {problem}", task.preset.name))
        })?;
    *known = Some((config.task.clone(), parameters.clone()));
    Ok(parameters)
}

/// Whether every parameter has a name of its own: state, weights and gradients are kept by it.
fn distinct(parameters: &[Parameter]) -> Result<(), String> {
    if parameters.is_empty() {
        return Err("has no parameter to train".to_owned());
    }
    let mut seen = BTreeSet::new();
    match parameters.iter().find(|parameter| !seen.insert(parameter.name.as_str())) {
        Some(Parameter { name, .. }) => Err(format!(
            "has two parameters named `{name}`: state and weights are kept by name, so each needs one of its own; give \
             the fields that hold them names that differ"
        )),
        None => Ok(()),
    }
}

/// Elements that the parameters of a model may have together: more than any machine holds, and few enough to be counted
/// in bytes.
const MOST_ELEMENTS: u64 = 1 << 44;

/// Checks shapes that were read from a file: they must be such that they can be added up.
pub(super) fn in_range(parameters: &[Parameter]) -> Result<(), ConfigError> {
    let elements = |parameter: &Parameter| {
        parameter.shape.iter().try_fold(1_u64, |elements, &length| elements.checked_mul(length as u64))
    };
    let all = parameters.iter().try_fold(0_u64, |sum, parameter| sum.checked_add(elements(parameter)?));
    match all {
        Some(all) if all <= MOST_ELEMENTS => Ok(()),
        _ => Err(ConfigError::Conflict(
            "model.parameters has more elements than there is memory anywhere".into(),
        )),
    }
}

/// The settings of one run as its task sees them.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a>(&'a Config);

impl<'a> Settings<'a> {
    /// Those of a run with this configuration.
    pub const fn of(config: &'a Config) -> Self {
        Self(config)
    }

    /// The seed of the run, `train.seed`.
    pub const fn seed(&self) -> u64 {
        self.0.train.seed
    }

    /// The whole configuration.
    pub const fn config(&self) -> &'a Config {
        self.0
    }

    /// A whole number; `key` with or without `task.`.
    ///
    /// # Errors
    /// The task has no such setting, or it is no whole number.
    pub fn integer(&self, key: &str) -> Result<usize, ConfigError> {
        let number = |value: &Value| value.as_integer().and_then(|number| usize::try_from(number).ok());
        self.read(key, "a whole number of at least 0", number)
    }

    /// A number.
    ///
    /// # Errors
    /// The task has no such setting, or it is no number.
    pub fn number(&self, key: &str) -> Result<f64, ConfigError> {
        self.read(key, "a number", |value| {
            value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
        })
    }

    /// True or false.
    ///
    /// # Errors
    /// The task has no such setting, or it is neither.
    pub fn switch(&self, key: &str) -> Result<bool, ConfigError> {
        self.read(key, "true or false", Value::as_bool)
    }

    /// A text.
    ///
    /// # Errors
    /// The task has no such setting, or it is no text.
    pub fn text(&self, key: &str) -> Result<&'a str, ConfigError> {
        self.read(key, "a text", Value::as_str)
    }

    fn read<T>(
        &self,
        key: &str,
        expected: &str,
        take: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<T, ConfigError> {
        let name = key.strip_prefix("task.").unwrap_or(key);
        let Some(value) = self.0.task.get(name) else {
            return Err(ConfigError::Conflict(format!(
                "the task reads task.{name}, which is none of its settings"
            )));
        };
        take(value).ok_or_else(|| ConfigError::Value {
            key: format!("task.{name}"),
            value: value.to_string(),
            origin: "as the task reads it".to_owned(),
            expected: expected.to_owned(),
        })
    }
}

/// Every key there is: those of the table, then the task's.
pub(super) fn all_fields() -> impl Iterator<Item = &'static Field> {
    FIELDS.iter().chain(settings())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::fields::Kind;

    fn task(name: &'static str, settings: &'static [Field]) -> Registered {
        Registered { preset: Preset { name, text: "" }, settings, shapes: |_| Ok(Vec::new()) }
    }

    #[test]
    fn a_task_that_could_not_be_told_apart_or_set_is_refused() {
        const WIDTH: Field = Field::new("task.width", Kind::Integer { min: 1, max: 9 }, "4", "", "width");
        check(&task("digits", &[WIDTH])).unwrap();
        let told = |name, settings| check(&task(name, settings)).unwrap_err().to_string();
        assert!(told("llama-nano", &[]).contains("built-in"));
        assert!(told("my task", &[]).contains("letters"));
        assert!(told("digits", &[WIDTH, WIDTH]).contains("two settings called `task.width`"));
        const LOST: Field = Field::new("width", Kind::Bool, "true", "", "");
        assert!(told("digits", &[LOST]).contains("task.NAME"));
        const WRONG: Field = Field::new("task.width", Kind::Integer { min: 1, max: 9 }, "40", "", "");
        assert!(told("digits", &[WRONG]).contains("from 1 to 9"));
    }

    #[test]
    fn two_parameters_of_one_name_are_told() {
        let named = |name: &str| Parameter { name: name.to_owned(), shape: vec![2] };
        distinct(&[named("a"), named("b")]).unwrap();
        let told = distinct(&[named("a"), named("b"), named("a")]).unwrap_err();
        assert!(told.contains("two parameters named `a`"), "{told}");
        assert!(distinct(&[]).unwrap_err().contains("no parameter"));
    }

    #[test]
    fn shapes_that_cannot_be_added_up_are_refused() {
        let shaped = |shape: &[usize]| Parameter { name: "a".to_owned(), shape: shape.to_vec() };
        in_range(&[shaped(&[4096, 4096]), shaped(&[])]).unwrap();
        assert!(in_range(&[shaped(&[1 << 40, 1 << 40])]).is_err());
        assert!(in_range(&vec![shaped(&[1 << 43]); 3]).is_err());
    }

    #[test]
    fn settings_are_read_by_their_name_and_kind() {
        let mut config = Layers::new().resolve().unwrap().config;
        config.task.insert("width".to_owned(), Value::Integer(5));
        config.task.insert("rate".to_owned(), Value::Float(0.5));
        let settings = Settings::of(&config);
        assert_eq!((settings.integer("task.width"), settings.number("rate")), (Ok(5), Ok(0.5)));
        assert_eq!(settings.number("width"), Ok(5.0));
        assert!(settings.switch("width").unwrap_err().to_string().contains("true or false"));
        assert!(settings.text("depth").unwrap_err().to_string().contains("task.depth"));
    }
}
