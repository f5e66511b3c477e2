//! A configuration document that knows where in it each value stands, so that errors can say so.

use std::fmt;
use std::ops::RangeInclusive;

use serde_json::{Map, Value};

/// What is wrong with a configuration: where, and what the rule is. One line.
#[derive(Debug, PartialEq)]
pub struct Error(String);

impl Error {
    pub fn new(path: &str, problem: &str) -> Self {
        Self(format!("{path}: {problem}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A value and its path from the top of the document, such as `requestMirror.percent`.
pub struct Node<'a> {
    value: &'a Value,
    path: String,
}

/// An object's fields.
#[derive(Clone)]
pub struct Fields<'a> {
    object: &'a Map<String, Value>,
    path: String,
}

impl<'a> Node<'a> {
    pub fn root(value: &'a Value) -> Self {
        Self { value, path: String::new() }
    }

    /// The path for people: the top of the document has no name of its own.
    pub fn path(&self) -> &str {
        if self.path.is_empty() { "configuration" } else { &self.path }
    }

    /// An error about this value; it is shown before the problem.
    pub fn error(&self, problem: &str) -> Error {
        match self.value {
            Value::Object(_) | Value::Array(_) => Error::new(self.path(), problem),
            value => {
                let value = serde_json::to_string(value).unwrap_or_default();
                Error::new(self.path(), &format!("{value} {problem}"))
            }
        }
    }

    /// The fields of an object of ours: one that is not `known` is refused, since a misspelt field
    /// would silently mirror nothing.
    pub fn fields(&self, known: &[&str]) -> Result<Fields<'a>, Error> {
        let fields = self.foreign_fields()?;
        match fields.object.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(fields),
            // Its name may hold anything, and the error is to be one line.
            Some(unknown) => {
                Err(fields.error(&unknown.escape_debug().to_string(), &suggestion(unknown, known)))
            }
        }
    }

    /// The fields of an object of which we read some and leave the others to those they concern.
    pub fn foreign_fields(&self) -> Result<Fields<'a>, Error> {
        match self.value {
            Value::Object(object) => Ok(Fields { object, path: self.path.clone() }),
            _ => Err(self.error("is not an object")),
        }
    }

    /// The items of a list.
    pub fn items(&self) -> Result<impl Iterator<Item = Node<'a>> + use<'a>, Error> {
        let Value::Array(items) = self.value else {
            return Err(self.error("is not a list"));
        };
        let path = self.path.clone();
        let node = move |(index, value)| Node { value, path: format!("{path}[{index}]") };
        Ok(items.iter().enumerate().map(node))
    }

    /// The text, if it is one of these.
    pub fn one_of(&self, known: &[&'static str]) -> Result<&'static str, Error> {
        let text = self.text()?;
        let found = known.iter().find(|name| **name == text);
        found.copied().ok_or_else(|| self.error(&format!("is not one of {}", known.join(", "))))
    }

    /// Text of labels, as in the names of Kubernetes objects and domains.
    pub fn dns_name(&self) -> Result<&'a str, Error> {
        let name = self.text()?;
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
        if name.is_empty() || !name.chars().all(fits) {
            return Err(self.error("is not a name of lower-case letters, digits, - and ."));
        }
        Ok(name)
    }

    pub fn text(&self) -> Result<&'a str, Error> {
        self.value.as_str().ok_or_else(|| self.error("is not a string"))
    }

    /// A whole number in `range`. Numbers that went through doubles count (`5.0` is 5).
    pub fn integer<T>(&self, range: RangeInclusive<T>) -> Result<T, Error>
    where
        T: TryFrom<u64> + Into<u64> + Copy,
    {
        let (least, most) = ((*range.start()).into(), (*range.end()).into());
        let number = self.whole_number(least, most)?;
        T::try_from(number).map_err(|_| self.out_of_range(least, most))
    }

    fn whole_number(&self, least: u64, most: u64) -> Result<u64, Error> {
        match self.value.as_u64().or_else(|| self.value.as_f64().and_then(whole)) {
            Some(number) if (least..=most).contains(&number) => Ok(number),
            _ => Err(self.out_of_range(least, most)),
        }
    }

    fn out_of_range(&self, least: u64, most: u64) -> Error {
        let what = if self.value.is_number() { "" } else { "a whole number " };
        self.error(&format!("is not {what}in {least}..={most}"))
    }
}

impl<'a> Fields<'a> {
    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    pub fn error(&self, key: &str, problem: &str) -> Error {
        Error::new(&self.path_of(key), problem)
    }

    /// A field that is there. `null` counts as absent, as it does in YAML and in Kubernetes.
    pub fn get(&self, key: &str) -> Option<Node<'a>> {
        let value = self.object.get(key).filter(|value| !value.is_null())?;
        Some(Node { value, path: self.path_of(key) })
    }

    /// The items of a list, none if it is absent.
    pub fn items(&self, key: &str) -> Result<Vec<Node<'a>>, Error> {
        self.get(key).map_or(Ok(Vec::new()), |list| Ok(list.items()?.collect()))
    }

    pub fn required(&self, key: &str) -> Result<Node<'a>, Error> {
        self.get(key).ok_or_else(|| self.error(key, "is missing"))
    }

    pub fn integer<T>(&self, key: &str, range: RangeInclusive<T>, absent: T) -> Result<T, Error>
    where
        T: TryFrom<u64> + Into<u64> + Copy,
    {
        self.get(key).map_or(Ok(absent), |node| node.integer(range))
    }
}

/// The integer that a double stands for, if it stands for one exactly.
fn whole(number: f64) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53: above it doubles skip integers
    let is_whole = number.fract() == 0.0 && (0.0..=EXACT).contains(&number);
    is_whole.then_some(number as u64)
}

fn suggestion(unknown: &str, known: &[&str]) -> String {
    let nearest = known.iter().min_by_key(|name| strsim::levenshtein(unknown, name));
    match nearest {
        Some(name) if strsim::levenshtein(unknown, name) <= 3 => {
            format!("unknown field; did you mean {name}?")
        }
        _ => format!("unknown field; known are {}", known.join(", ")),
    }
}
