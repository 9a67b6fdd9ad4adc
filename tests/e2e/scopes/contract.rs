//! The RPCs of the contract, and the text fields of their requests, as the proto files declare them.

use std::collections::BTreeMap;

use prost::{Message, encoding};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorSet, field_descriptor_proto::Type,
};

pub(super) struct Contract {
    /// The type of the request of each `<service>/<rpc>`.
    requests: BTreeMap<String, String>,
    /// By the full name, with a leading dot.
    messages: BTreeMap<String, DescriptorProto>,
}

impl Contract {
    pub(super) fn read() -> Self {
        let descriptors = FileDescriptorSet::decode(proto::DESCRIPTORS).unwrap();
        let mut contract = Self {
            requests: BTreeMap::new(),
            messages: BTreeMap::new(),
        };
        for file in descriptors.file {
            let package = format!(".{}", file.package());
            contract.add_messages(&package, &file.message_type);
            if file.package() != "delivery.v1" {
                continue;
            }
            for service in &file.service {
                for rpc in &service.method {
                    let name = format!("{}/{}", service.name(), rpc.name());
                    let request = rpc.input_type().to_owned();
                    contract.requests.insert(name, request);
                }
            }
        }
        contract
    }

    /// `<service>/<rpc>` of every RPC, in order.
    pub(super) fn rpcs(&self) -> Vec<&str> {
        self.requests.keys().map(String::as_str).collect()
    }

    /// The path of every text field in the request of an RPC: `delivery.dropoff.comments`.
    pub(super) fn text_fields(&self, rpc: &str) -> Vec<String> {
        self.text_fields_of(&self.requests[rpc])
    }

    /// Encodes the request of an RPC with these text fields, given by their paths.
    pub(super) fn request(&self, rpc: &str, fields: &[(&str, &str)]) -> Vec<u8> {
        let request = &self.requests[rpc];
        // Concatenated encodings are merged.
        let encoded = fields
            .iter()
            .map(|(path, text)| self.encode(request, path, text));
        encoded.flatten().collect()
    }

    fn add_messages(&mut self, scope: &str, messages: &[DescriptorProto]) {
        for message in messages {
            let name = format!("{scope}.{}", message.name());
            self.add_messages(&name, &message.nested_type);
            self.messages.insert(name, message.clone());
        }
    }

    fn text_fields_of(&self, message: &str) -> Vec<String> {
        let fields = self.messages[message].field.iter();
        let paths = fields.map(|field| match field.r#type() {
            Type::String => vec![field.name().to_owned()],
            Type::Message => {
                let inner = self.text_fields_of(field.type_name()).into_iter();
                inner
                    .map(|path| format!("{}.{path}", field.name()))
                    .collect()
            }
            _ => Vec::new(),
        });
        paths.flatten().collect()
    }

    fn encode(&self, message: &str, path: &str, text: &str) -> Vec<u8> {
        let (value, field) = match path.split_once('.') {
            None => (text.as_bytes().to_vec(), self.field(message, path)),
            Some((name, rest)) => {
                let field = self.field(message, name);
                (self.encode(field.type_name(), rest, text), field)
            }
        };
        let number = u32::try_from(field.number()).unwrap();
        let mut encoded = Vec::new();
        encoding::bytes::encode(number, &value, &mut encoded);
        encoded
    }

    fn field(&self, message: &str, name: &str) -> &FieldDescriptorProto {
        let mut fields = self.messages[message].field.iter();
        fields.find(|field| field.name() == name).unwrap()
    }
}
