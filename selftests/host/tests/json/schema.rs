// SPDX-License-Identifier: GPL-2.0

//! `Documentation/hist-json.schema.json`, checked against the lines: the part of JSON Schema that the file uses. Any
//! other keyword, and any member that the schema does not name, is an error.

use serde_json::Value;

const SCHEMA: &str = include_str!("../../../../Documentation/hist-json.schema.json");

/// The parsed schema.
pub(crate) struct Schema(Value);

impl Schema {
    pub(crate) fn new() -> Self {
        Self(serde_json::from_str(SCHEMA).expect("JSON"))
    }

    /// Says what is wrong with a line.
    pub(crate) fn check(&self, line: &Value) -> Result<(), String> {
        self.fits(&self.0, line)
    }

    /// The schema that `value` is, or refers to.
    fn find<'s>(&'s self, value: &'s Value) -> &'s Value {
        match value.get("$ref").and_then(Value::as_str) {
            Some(path) => {
                let path = path.strip_prefix('#').expect("a place of this file");
                self.0.pointer(path).expect("a place that there is")
            }
            None => value,
        }
    }

    fn fits(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let schema = self.find(schema).as_object().expect("an object");

        for (keyword, wanted) in schema {
            let fits = match keyword.as_str() {
                "$schema" | "$comment" | "$defs" | "title" | "description" => true,
                "const" => value == wanted,
                "enum" => wanted.as_array().expect("a list").contains(value),
                "type" => match wanted {
                    Value::Array(types) => types.iter().any(|wanted| is_of(wanted, value)),
                    wanted => is_of(wanted, value),
                },
                "minimum" => wide(value).is_none_or(|v| v >= wide(wanted).expect("a number")),
                "maximum" => wide(value).is_none_or(|v| v <= wide(wanted).expect("a number")),
                "minItems" | "maxItems" => value.as_array().is_none_or(|items| {
                    let (len, wanted) = (items.len() as i128, wide(wanted).expect("a number"));
                    match keyword.as_str() {
                        "minItems" => len >= wanted,
                        _ => len <= wanted,
                    }
                }),
                "pattern" => {
                    assert_eq!(wanted, "^0x[0-9a-f]+$", "the only one");
                    let digits = value.as_str().and_then(|text| text.strip_prefix("0x"));
                    digits.is_some_and(|digits| {
                        !digits.is_empty()
                            && digits
                                .bytes()
                                .all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
                    })
                }
                "required" => {
                    let names = wanted.as_array().expect("a list");
                    value.as_object().is_none_or(|object| {
                        names
                            .iter()
                            .all(|name| object.contains_key(name.as_str().expect("a name")))
                    })
                }
                "oneOf" => {
                    let all = wanted.as_array().expect("a list");
                    all.iter()
                        .filter(|one| self.fits(one, value).is_ok())
                        .count()
                        == 1
                }
                "items" => {
                    for item in value.as_array().into_iter().flatten() {
                        self.fits(wanted, item)?;
                    }
                    true
                }
                "properties" | "additionalProperties" => {
                    for (name, member) in value.as_object().into_iter().flatten() {
                        let declared = schema.get("properties").and_then(|all| all.get(name));
                        let Some(one) = declared.or(schema.get("additionalProperties")) else {
                            return Err(format!("{name} is not in the schema"));
                        };
                        self.fits(one, member)
                            .map_err(|why| format!("{name}: {why}"))?;
                    }
                    true
                }
                keyword => panic!("{keyword} is not known here"),
            };
            if !fits {
                return Err(format!("{value} is not {keyword} {wanted}"));
            }
        }
        Ok(())
    }
}

/// A number of any sign.
pub(crate) fn wide(value: &Value) -> Option<i128> {
    let signed = value.as_i64().map(i128::from);
    signed.or_else(|| value.as_u64().map(i128::from))
}

fn is_of(wanted: &Value, value: &Value) -> bool {
    match wanted.as_str().expect("a name") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => wide(value).is_some(),
        "number" => value.is_number(),
        other => panic!("{other} is not known here"),
    }
}
