//! The protocol's shape, held against a committed list: a change of the wire must be one that somebody meant.
#![allow(clippy::unwrap_used, missing_docs, reason = "in a test a panic is the report")]

mod committed;

use std::collections::BTreeMap;

use headworks_proto::DESCRIPTORS;
use prost::Message;
use prost_types::field_descriptor_proto::Label;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    MethodDescriptorProto,
};

const PACKAGE: &str = "headworks.v1";
const SNAPSHOT: &str = "snapshots/headworks.v1.txt";

/// One line for each field, enum value and method: its name, ` = `, and what the wire depends on.
fn lines(file: &FileDescriptorProto) -> Vec<String> {
    let methods = file.service.iter().flat_map(|service| {
        service.method.iter().map(|method| method_line(&format!("{PACKAGE}.{}", service.name()), method))
    });
    let mut lines: Vec<String> = methods.collect();
    for message in &file.message_type {
        message_lines(message.name(), message, &mut lines);
    }
    for values in &file.enum_type {
        enum_lines(values.name(), values, &mut lines);
    }
    lines
}

fn method_line(service: &str, method: &MethodDescriptorProto) -> String {
    let side = |streams, name| format!("{}{}", if streams { "stream " } else { "" }, short(name));
    let input = side(method.client_streaming(), method.input_type());
    let output = side(method.server_streaming(), method.output_type());
    format!("rpc /{service}/{} = {input} -> {output}", method.name())
}

fn message_lines(path: &str, message: &DescriptorProto, lines: &mut Vec<String>) {
    lines.extend(message.field.iter().map(|field| field_line(path, message, field)));
    for nested in &message.nested_type {
        message_lines(&format!("{path}.{}", nested.name()), nested, lines);
    }
    for values in &message.enum_type {
        enum_lines(&format!("{path}.{}", values.name()), values, lines);
    }
}

fn enum_lines(path: &str, values: &EnumDescriptorProto, lines: &mut Vec<String>) {
    lines.extend(
        values.value.iter().map(|value| format!("enum {path}.{} = {}", value.name(), value.number())),
    );
}

fn field_line(path: &str, message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    let of = match field.type_name() {
        "" => field.r#type().as_str_name().trim_start_matches("TYPE_").to_lowercase(),
        name => short(name).to_owned(),
    };
    let label = match field.label() {
        Label::Repeated => "repeated",
        _ if field.proto3_optional() => "optional",
        _ => "single",
    };
    // An `optional` field sits in a oneof of its own, which nobody wrote.
    let oneof = (field.oneof_index.filter(|_| !field.proto3_optional()))
        .map(|index| format!(", oneof {}", message.oneof_decl[usize::try_from(index).unwrap()].name()));
    format!("{path}.{} = {} : {of}, {label}{}", field.name(), field.number(), oneof.unwrap_or_default())
}

fn short(name: &str) -> &str {
    name.strip_prefix(&format!(".{PACKAGE}.")).unwrap_or(name)
}

/// What a reviewer must know about a protocol that is not the committed one; empty if it is.
fn review(committed: &str, made: &str) -> String {
    let (before, after) = (by_name(committed), by_name(made));
    let mut breaking = Vec::new();
    for (name, was) in &before {
        match after.get(name) {
            None => breaking.push(format!("  gone:    {name} = {was}")),
            Some(is) if is != was => breaking.push(format!("  changed: {name} = {was}, now {is}")),
            Some(_) => {}
        }
    }
    let added = after.iter().filter(|(name, _)| !before.contains_key(*name));
    let added: Vec<String> = added.map(|(name, is)| format!("  added:   {name} = {is}")).collect();
    let mut review = String::new();
    if !breaking.is_empty() {
        review += "BREAKING: releases in the field still speak these. Put them back as they were, and give new \
                   meaning a new field with a new number.\n";
        review += &(breaking.join("\n") + "\n");
    }
    if !added.is_empty() {
        review += "Added. Check that each number was never used before, that a release without the field does the \
                   right thing by ignoring it, and that this release does the right thing when it is absent.\n";
        review += &(added.join("\n") + "\n");
    }
    if review.is_empty() && committed != made {
        review += "Only the order of the lines differs.\n";
    }
    review
}

fn by_name(text: &str) -> BTreeMap<&str, &str> {
    text.lines().map(|line| line.split_once(" = ").unwrap()).collect()
}

fn protocol() -> String {
    let set = FileDescriptorSet::decode(DESCRIPTORS).unwrap();
    let files = set.file.iter().filter(|file| file.package() == PACKAGE);
    files.flat_map(lines).collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn the_protocol_is_the_committed_one() {
    let made = protocol();
    let review = review(&committed::text(SNAPSHOT, &made), &made);
    assert!(
        review.is_empty(),
        "the protocol differs from tests/{SNAPSHOT}\n\n{review}\n\
         If all of it is meant: UPDATE_SNAPSHOTS=1 cargo test -p headworks-proto, and commit the file."
    );
}

#[test]
fn every_enum_says_nothing_by_its_zero() {
    let zeros: Vec<String> =
        protocol().lines().filter(|line| line.ends_with(" = 0")).map(String::from).collect();
    assert_eq!(zeros.len(), 9);
    assert!(zeros.iter().all(|line| line.contains("_UNSPECIFIED")), "{zeros:?}");
}

#[test]
fn a_field_that_is_gone_is_called_breaking() {
    let review = review("A.a = 1 : bool, single\nA.b = 2 : bool, single\n", "A.b = 2 : bool, single\n");
    assert!(review.starts_with("BREAKING"), "{review}");
    assert!(review.contains("gone:    A.a = 1"), "{review}");
    assert!(!review.contains("A.b"), "{review}");
}

#[test]
fn a_field_with_another_number_or_type_is_called_breaking() {
    for now in ["A.a = 2 : bool, single\n", "A.a = 1 : uint64, single\n", "A.a = 1 : bool, repeated\n"] {
        let review = review("A.a = 1 : bool, single\n", now);
        assert!(review.starts_with("BREAKING"), "{review}");
        assert!(review.contains("changed: A.a = 1 : bool, single, now "), "{review}");
    }
}

#[test]
fn a_field_that_is_new_is_called_added() {
    let review = review("A.a = 1 : bool, single\n", "A.a = 1 : bool, single\nA.b = 2 : bool, single\n");
    assert!(review.starts_with("Added"), "{review}");
    assert!(!review.contains("BREAKING"), "{review}");
}
