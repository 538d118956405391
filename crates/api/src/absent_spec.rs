//! Lets an object without `spec` decode as one with an empty spec.
//!
//! The schema of a node class does not require `spec`, and a list that holds one such object must
//! still decode. The root types are generated, so the leniency sits in the spec: serde asks a
//! missing field for an optional value, and that is the one question answered here.

/// Implements serde for a spec that derives its traits with `#[serde(remote = "Self")]`.
macro_rules! absent_spec_is_default {
    ($spec:ident) => {
        impl serde::Serialize for $spec {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $spec::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $spec {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct OptionalSpec;

                impl<'de> serde::de::Visitor<'de> for OptionalSpec {
                    type Value = $spec;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("a spec or nothing")
                    }

                    fn visit_none<E>(self) -> Result<$spec, E> {
                        Ok($spec::default())
                    }

                    fn visit_unit<E>(self) -> Result<$spec, E> {
                        Ok($spec::default())
                    }

                    fn visit_some<D: serde::Deserializer<'de>>(self, d: D) -> Result<$spec, D::Error> {
                        $spec::deserialize(d)
                    }
                }

                deserializer.deserialize_option(OptionalSpec)
            }
        }
    };
}

pub(crate) use absent_spec_is_default;
