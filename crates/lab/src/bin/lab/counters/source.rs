//! One file of Rust. Items behind `#[cfg(test)]` are removed before the counts.

use std::collections::BTreeSet;

use anyhow::Context;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{FnArg, Ident, Type as Written, UseTree};

#[derive(Default)]
pub(super) struct Source {
    /// The path from the root of the repository.
    pub(super) path: String,
    pub(super) all_lines: usize,
    /// Lines without tests.
    pub(super) lines: usize,
    /// Lines without tests, comments (of whole lines, `//`) and blanks.
    pub(super) code: usize,
    pub(super) functions: Vec<Function>,
    pub(super) types: Vec<Type>,
    /// Paths in the crate that `use` names.
    pub(super) imports: Vec<Vec<String>>,
    /// Texts of several words, in order: messages, headings, parts of them.
    pub(super) texts: Vec<String>,
    /// Names in `#[cfg(test)] mod NAME;`.
    tests: Vec<String>,
}

pub(super) struct Function {
    pub(super) name: String,
    pub(super) line: usize,
    /// From `fn` to the closing brace.
    pub(super) lines: usize,
    /// Parameters that are tuples or references to tuples.
    pub(super) tuples: usize,
}

pub(super) struct Type {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) line: usize,
    /// Fields of a struct, methods of a trait, else 0.
    pub(super) size: usize,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Struct,
    Enum,
    Trait,
    Alias,
}

impl Source {
    pub(super) fn of(path: &str, text: &str) -> anyhow::Result<Self> {
        let lines: Vec<&str> = text.lines().collect();
        let mut source = Self { path: path.to_owned(), all_lines: lines.len(), ..Self::default() };
        if is_test(path) {
            return Ok(source);
        }
        let tokens: TokenStream =
            text.parse().ok().with_context(|| format!("{path}: cannot be read as Rust"))?;
        let mut tests = Tests::default();
        let tokens = tests.remove_from(tokens);
        let is_code = |line: &str| !line.is_empty() && !line.starts_with("//");
        for (_, line) in (1..).zip(&lines).filter(|(number, _)| !tests.lines.contains(number)) {
            source.lines += 1;
            source.code += usize::from(is_code(line.trim()));
        }
        source.tests = tests.modules;
        texts(&tokens, &mut source.texts);
        let module = source.module().map_or_else(Vec::new, |(_, module)| module);
        let file = syn::parse2(tokens).with_context(|| path.to_owned())?;
        Items { source: &mut source, module }.visit_file(&file);
        Ok(source)
    }

    /// Removes everything except the number of lines.
    pub(super) fn clear(&mut self) {
        *self = Self { path: std::mem::take(&mut self.path), all_lines: self.all_lines, ..Self::default() };
    }

    pub(super) fn crate_name(&self) -> &str {
        self.path.split('/').nth(1).unwrap_or_default()
    }

    pub(super) fn at(&self, line: usize, name: &str) -> String {
        format!("{}:{line} {name}", self.path)
    }

    /// The root of the crate, and the path of the module in it; `None` outside of `src`.
    pub(super) fn module(&self) -> Option<(String, Vec<String>)> {
        let (root, rest) = self.path.strip_suffix(".rs")?.split_once("/src/")?;
        let mut module: Vec<String> = rest.split('/').map(str::to_owned).collect();
        let mut root = format!("{root}/src");
        if module[0] == "bin" && module.len() > 1 {
            root = format!("{root}/bin/{}", module[1]);
            module.drain(..2);
        }
        if matches!(module.last().map(String::as_str), Some("lib" | "main" | "mod")) {
            module.pop();
        }
        Some((root, module))
    }

    /// The paths of modules of tests, without the ending of their files.
    pub(super) fn test_modules(&self) -> impl Iterator<Item = String> {
        let (folder, file) = self.path.rsplit_once('/').unwrap_or_default();
        let folder = match file {
            "lib.rs" | "main.rs" | "mod.rs" => folder,
            _ => self.path.trim_end_matches(".rs"),
        };
        self.tests.iter().map(move |name| format!("{folder}/{name}"))
    }
}

/// Whether a file is a test by its name.
fn is_test(path: &str) -> bool {
    let (folder, file) = path.rsplit_once('/').unwrap_or_default();
    ["tests", "benches", "examples"].into_iter().any(|name| folder.split('/').any(|part| part == name))
        || matches!(file, "tests.rs" | "test.rs")
        || file.ends_with("_tests.rs")
        || file.ends_with("_test.rs")
}

/// Tests that are removed from a file.
#[derive(Default)]
struct Tests {
    lines: BTreeSet<usize>,
    modules: Vec<String>,
}

impl Tests {
    /// The tokens without items behind `#[cfg(test)]`.
    fn remove_from(&mut self, tokens: TokenStream) -> TokenStream {
        let mut rest = &tokens.into_iter().collect::<Vec<_>>()[..];
        let mut kept: Vec<TokenTree> = Vec::new();
        while let Some(first) = rest.first() {
            if let Some(end) = test_item(rest) {
                self.lines.extend(first.span().start().line..=rest[end - 1].span().end().line);
                if let Some([TokenTree::Ident(_), TokenTree::Ident(name), TokenTree::Punct(_)]) =
                    rest[..end].last_chunk::<3>().filter(|last| is(&last[0], "mod"))
                {
                    self.modules.push(name.to_string());
                }
                // Attributes and comments above `#[cfg(test)]` are of the same item.
                while let [.., hash, attribute] = &kept[..]
                    && is(hash, "#")
                    && matches!(attribute, TokenTree::Group(_))
                {
                    kept.truncate(kept.len() - 2);
                }
                rest = &rest[end..];
                continue;
            }
            kept.push(match first {
                TokenTree::Group(group) => {
                    let mut inner = Group::new(group.delimiter(), self.remove_from(group.stream()));
                    inner.set_span(group.span());
                    inner.into()
                }
                other => other.clone(),
            });
            rest = &rest[1..];
        }
        kept.into_iter().collect()
    }
}

/// The number of tokens of an item behind `#[cfg(test)]` at the start of `tokens`.
fn test_item(tokens: &[TokenTree]) -> Option<usize> {
    let [hash, TokenTree::Group(attribute), ..] = tokens else { return None };
    let condition = attribute.stream().to_string().replace(' ', "");
    if !is(hash, "#")
        || !["cfg(test", "cfg(all(test", "cfg(any(test"].iter().any(|on| condition.starts_with(on))
    {
        return None;
    }
    let is_end = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        other => is(other, ";"),
    };
    let end = tokens.iter().position(is_end)? + 1;
    // `use a::{b};` ends behind the brace.
    Some(end + usize::from(tokens.get(end).is_some_and(|token| is(token, ";"))))
}

/// Collects texts of at least two words. Attributes except `#[error("…")]`, and texts of panics, are not messages.
fn texts(tokens: &TokenStream, out: &mut Vec<String>) {
    const PANICS: [&str; 9] = [
        "assert",
        "assert_eq",
        "debug_assert",
        "debug_assert_eq",
        "debug_assert_ne",
        "expect",
        "panic",
        "todo",
        "unreachable",
    ];
    let mut before = [None, None];
    for token in tokens.clone() {
        match &token {
            TokenTree::Group(group) => {
                let word = before.iter().rev().flatten().find(|token| !is(token, "!"));
                let is_attribute = word.is_some_and(|word| is(word, "#"));
                let is_error = || group.stream().into_iter().next().is_some_and(|first| is(&first, "error"));
                let is_panic = word.is_some_and(|word| PANICS.iter().any(|name| is(word, name)));
                if (is_attribute && is_error()) || !(is_attribute || is_panic) {
                    texts(&group.stream(), out);
                }
            }
            TokenTree::Literal(literal) => {
                let text = syn::parse_str::<syn::LitStr>(&literal.to_string()).map(|text| text.value());
                out.extend(text.ok().filter(|text| is_message(text)));
            }
            _ => {}
        }
        before = [before[1].take(), Some(token)];
    }
}

/// Whether a text has two words, one after the other.
fn is_message(text: &str) -> bool {
    let is_word = |word: &str| {
        word.len() > 1 && word.trim_matches(|c: char| !c.is_alphabetic()).chars().all(char::is_alphabetic)
    };
    let words: Vec<_> = text.split_whitespace().collect();
    words.windows(2).any(|pair| pair.iter().all(|word| is_word(word)))
}

/// Whether a token is a word or a character.
fn is(token: &TokenTree, text: &str) -> bool {
    match token {
        TokenTree::Ident(ident) => ident == text,
        TokenTree::Punct(punct) => text.chars().eq([punct.as_char()]),
        _ => false,
    }
}

/// Collects the items of a file.
struct Items<'a> {
    source: &'a mut Source,
    /// The module, also one inside the file.
    module: Vec<String>,
}

impl Items<'_> {
    fn function(&mut self, written: &syn::Signature, body: Option<&syn::Block>) {
        let line = written.fn_token.span.start().line;
        let lines = body.map_or(0, |body| body.brace_token.span.close().end().line - line + 1);
        let is_tuple = |input: &&FnArg| matches!(input, FnArg::Typed(typed) if is_tuple(&typed.ty));
        let tuples = written.inputs.iter().filter(is_tuple).count();
        self.source.functions.push(Function { name: written.ident.to_string(), line, lines, tuples });
    }

    fn a_type(&mut self, kind: Kind, name: &Ident, size: usize) {
        self.source.types.push(Type { kind, name: name.to_string(), line: name.span().start().line, size });
    }

    /// Collects the paths of `use` that lead into the crate.
    fn import(&mut self, path: &[String], tree: &UseTree) {
        let with = |name: &Ident| [path, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(more) => self.import(&with(&more.ident), &more.tree),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.import(path, tree)),
            UseTree::Name(name) => self.source.imports.extend(absolute(&self.module, &with(&name.ident))),
            UseTree::Rename(name) => self.source.imports.extend(absolute(&self.module, &with(&name.ident))),
            UseTree::Glob(_) => self.source.imports.extend(absolute(&self.module, path)),
        }
    }
}

/// A path from the root of the crate; `None` if it leads to another crate.
fn absolute(module: &[String], path: &[String]) -> Option<Vec<String>> {
    let mut base = match path.first()?.as_str() {
        "crate" => Vec::new(),
        "self" | "super" => module.to_vec(),
        _ => return None,
    };
    for name in path {
        match name.as_str() {
            "crate" | "self" => {}
            "super" => {
                base.pop();
            }
            name => base.push(name.to_owned()),
        }
    }
    Some(base)
}

fn is_tuple(written: &Written) -> bool {
    match written {
        Written::Tuple(tuple) => !tuple.elems.is_empty(),
        Written::Reference(reference) => is_tuple(&reference.elem),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Items<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, Some(&item.block));
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, Some(&item.block));
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.function(&item.sig, item.default.as_ref());
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.a_type(Kind::Struct, &item.ident, item.fields.len());
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.a_type(Kind::Enum, &item.ident, 0);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        let methods = item.items.iter().filter(|item| matches!(item, syn::TraitItem::Fn(_))).count();
        self.a_type(Kind::Trait, &item.ident, methods);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.a_type(Kind::Alias, &item.ident, 0);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.import(&[], &item.tree);
    }
}
