//! The JSON Schema of a configuration file, from the table of fields. Editors complete and check with it.

use serde_json::{Map, Value, json};

use crate::config::fields::{self, Field, Kind};

/// The schema, draft 2020-12.
pub fn schema() -> Value {
    let mut root = object("a tui-train configuration");
    if let Some(map) = root.as_object_mut() {
        map.shift_insert(0, "$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    }
    for field in fields::all() {
        place(&mut root, field.key, property(field));
        // `optimizer.lr` is short for the chosen optimizer's key.
        if let Some((_, short)) = field.key.strip_prefix("optimizer.").and_then(|rest| rest.split_once('.')) {
            place(&mut root, &format!("optimizer.{short}"), short_property(short));
        }
    }
    root
}

fn object(about: &str) -> Value {
    json!({"type": "object", "description": about, "additionalProperties": false, "properties": {}})
}

fn place(root: &mut Value, key: &str, property: Value) {
    let mut at = root;
    let mut path = key.split('.').peekable();
    while let Some(name) = path.next() {
        let next = if path.peek().is_none() { property.clone() } else { object(name) };
        at = &mut at["properties"];
        let Some(map) = at.as_object_mut() else { return };
        at = map.entry(name).or_insert(next);
    }
}

fn property(field: &Field) -> Value {
    let mut property = kind(&field.kind);
    let unit = if field.unit.is_empty() { String::new() } else { format!(" ({})", field.unit) };
    property.insert("description".into(), format!("{}{unit}", field.help).into());
    let default =
        format!("v = {}", field.default).parse::<toml::Table>().ok().and_then(|mut t| t.remove("v"));
    if let Some(default) = default.and_then(|value| serde_json::to_value(value).ok()) {
        property.insert("default".into(), default);
    }
    Value::Object(property)
}

/// What any of the optimizers takes under that name.
fn short_property(short: &str) -> Value {
    let mut kinds: Vec<Value> = Vec::new();
    let suffix = format!(".{short}");
    for field in
        fields::all().filter(|field| field.key.starts_with("optimizer.") && field.key.ends_with(&suffix))
    {
        let kind = Value::Object(kind(&field.kind));
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    json!({"description": format!("short for the chosen optimizer's {short}"), "anyOf": kinds})
}

fn kind(kind: &Kind) -> Map<String, Value> {
    let number = |min: f64, max: f64| {
        let mut number = json!({"type": "number", "minimum": min});
        if max < f64::MAX {
            number["maximum"] = max.into();
        }
        number
    };
    let value = match kind {
        Kind::Integer { min, max: i64::MAX } => json!({"type": "integer", "minimum": min}),
        Kind::Integer { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Float { min, max } => number(*min, *max),
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Choice(names) => json!({"enum": names}),
        Kind::Text => json!({"type": "string"}),
        Kind::List => json!({"type": "array", "items": {"type": "string"}}),
        Kind::Pair { min, max } => {
            json!({"type": "array", "items": number(*min, *max), "minItems": 2, "maxItems": 2})
        }
    };
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::fields::FIELDS;

    #[test]
    fn every_key_is_described_with_its_range() {
        let schema = schema();
        for field in FIELDS {
            let pointer = format!("/properties/{}", field.key.replace('.', "/properties/"));
            let property = schema.pointer(&pointer).unwrap_or(&Value::Null);
            assert!(property["description"].as_str().unwrap_or("").starts_with(field.help), "{}", field.key);
            assert_eq!(property["default"].is_null(), field.default.is_empty(), "{}", field.key);
        }
        let accumulate = &schema["properties"]["train"]["properties"]["accumulate"];
        assert_eq!((accumulate["minimum"].as_i64(), accumulate["maximum"].as_i64()), (Some(1), Some(4096)));
        let optimizer = &schema["properties"]["optimizer"]["properties"];
        assert_eq!(optimizer["eps"]["anyOf"].as_array().unwrap().len(), 2, "a number or a pair");
        assert_eq!(optimizer["name"]["enum"][0], "adamw");
        assert_eq!(schema["additionalProperties"], false);
    }
}
