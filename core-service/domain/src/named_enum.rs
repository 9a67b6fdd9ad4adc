//! Enums whose values have names, in the database and in the API.

/// The error for a name that no value has.
pub(crate) fn unknown_name(kind: &str, name: &str, known: &str) -> String {
    let name: String = name.chars().take(64).collect();
    format!("there is no {kind} {name:?}; the {kind}s are {known}")
}

/// Defines an enum with [`std::str::FromStr`] and `as_str`. Its kind and the separator of its names
/// are for the error.
macro_rules! named_enum {
    (
        $(#[$doc:meta])*
        pub enum $type:ident($kind:literal, $separator:literal) {
            $($(#[$value_doc:meta])* $value:ident = $name:literal,)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type {
            $($(#[$value_doc])* $value,)+
        }

        impl $type {
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }
        }

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let mut all = Self::ALL.into_iter();
                all.find(|value| value.as_str() == text).ok_or_else(|| {
                    let known = Self::ALL.map(Self::as_str).join($separator);
                    $crate::named_enum::unknown_name($kind, text, &known)
                })
            }
        }
    };
}

pub(crate) use named_enum;
