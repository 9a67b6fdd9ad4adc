//! Which members of a request are known: those that the table of classes describes.

use super::classes::{self, Access, Class, Range};

/// The known content of a JSON value in a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// The members of a class.
    Class(&'static Class),
    /// Members with names chosen by the client.
    Map,
    /// Not an object: its members are not checked.
    Value,
}

impl Shape {
    /// Whether an object of this shape has the member in requests or in responses. True for a value
    /// that must not be an object: that is reported as a violation of its own.
    pub(crate) fn has_member(self, name: &str) -> bool {
        match self {
            Self::Class(class) => class.fields.iter().any(|field| field.name == name),
            Self::Map | Self::Value => true,
        }
    }

    /// The shape of a member; none if it is unknown.
    pub(crate) fn of_member(self, name: &str) -> Option<Self> {
        match self {
            Self::Class(class) => {
                let mut fields = class.fields.iter();
                let field = fields.find(|field| field.name == name)?;
                if field.access == Access::Read {
                    return None;
                }
                Some(match &field.range {
                    Range::Object(class) => Self::Class(classes::find(class)),
                    Range::Json => Self::Map,
                    _ => Self::Value,
                })
            }
            Self::Map => Some(Self::Value),
            Self::Value => None,
        }
    }
}
