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
        self.encode(&self.requests[rpc], fields)
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

    /// The fields of a nested message are in one of them, also if it is repeated.
    fn encode(&self, message: &str, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut encoded = Vec::new();
        let mut nested = BTreeMap::<_, Vec<_>>::new();
        for (path, text) in fields {
            match path.split_once('.') {
                None => self.append(message, path, text.as_bytes(), &mut encoded),
                Some((name, rest)) => nested.entry(name).or_default().push((rest, *text)),
            }
        }
        for (name, fields) in nested {
            let inner = self.encode(self.field(message, name).type_name(), &fields);
            self.append(message, name, &inner, &mut encoded);
        }
        encoded
    }

    fn append(&self, message: &str, name: &str, value: &[u8], encoded: &mut Vec<u8>) {
        let number = u32::try_from(self.field(message, name).number()).unwrap();
        encoding::bytes::encode(number, &value.to_vec(), encoded);
    }

    fn field(&self, message: &str, name: &str) -> &FieldDescriptorProto {
        let mut fields = self.messages[message].field.iter();
        fields.find(|field| field.name() == name).unwrap()
    }
}
