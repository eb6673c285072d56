//! Converts messages of a net to plain Python values.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use syncblob_net::{Field, Message, Value};

use crate::arguments::text;

/// The fields that Python sees as attributes of a layer. All others are parameters.
const ATTRIBUTES: &[&str] = &["name", "type", "bottom", "top"];

pub fn parameters<'py>(py: Python<'py>, layer: &Message) -> PyResult<Bound<'py, PyDict>> {
    let fields = layer.fields().iter();
    dict(py, fields.filter(|field| !ATTRIBUTES.contains(&field.name())))
}

pub fn texts<'py>(py: Python<'py>, message: &Message, name: &str) -> PyResult<Bound<'py, PyTuple>> {
    let fields = message.fields().iter().filter(|field| field.name() == name);
    let texts = fields.map(|field| value(py, field)).collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, texts)
}

fn dict<'py, 'm>(
    py: Python<'py>,
    fields: impl Iterator<Item = &'m Field>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for field in fields {
        let value = value(py, field)?;
        match dict.get_item(field.name())? {
            _ if !field.is_repeated() => dict.set_item(field.name(), value)?,
            Some(list) => list.cast::<PyList>()?.append(value)?,
            None => dict.set_item(field.name(), PyList::new(py, [value])?)?,
        }
    }
    Ok(dict)
}

fn value<'py>(py: Python<'py>, field: &Field) -> PyResult<Bound<'py, PyAny>> {
    Ok(match (field.value(), field.enum_name()) {
        (_, Some(name)) => name.into_pyobject(py)?.into_any(),
        (Value::Bool(value), _) => value.into_pyobject(py)?.to_owned().into_any(),
        (Value::Int(value), _) => value.into_pyobject(py)?.into_any(),
        (Value::Float(value), _) => shortest(*value).into_pyobject(py)?.into_any(),
        (Value::Text(value), _) => text(py, value)?.into_any(),
        (Value::Message(message), _) => dict(py, message.fields().iter())?.into_any(),
        (Value::Unknown(value), _) => PyBytes::new(py, value).into_any(),
        _ => py.None().into_bound(py),
    })
}

/// Converts a C `float` to the number that a prototxt contains: 0.1, not 0.10000000149011612.
#[allow(clippy::cast_possible_truncation)] // the results are compared
fn shortest(value: f64) -> f64 {
    let float = value as f32;
    match f64::from(float) == value {
        true => float.to_string().parse().unwrap_or(value),
        false => value,
    }
}
