//! Translates the bindings to C. The C compiler refuses a declaration that differs from the
//! header's.

use std::env;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use syn::{Expr, Fields, FnArg, ForeignItem, Item, Lit, ReturnType, Type, UnOp};

const BINDINGS: &str = concat!(
    include_str!("../src/bindings.rs"),
    include_str!("../src/testing.rs"),
    include_str!("../src/comm.rs")
);
const HEADERS: &str = concat!(include_str!("../wrapper.h"), "#include <syncblob/sim.h>\n#include <syncblob/comm_engine.h>\n#include <syncblob/nccl.h>\n#include <syncblob/reducer.h>\n#include <syncblob/sim_comm.h>\n");

// --- Rust to C ----------------------------------------------------------------

fn declare(ty: &Type, name: &str) -> String {
    match ty {
        Type::Path(path) => {
            let last = path.path.segments.last().expect("a path has an end");
            match &last.arguments {
                syn::PathArguments::None => format!("{} {name}", c_name(&last.ident.to_string())),
                syn::PathArguments::AngleBracketed(inner) if last.ident == "Option" => {
                    match inner.args.first() {
                        Some(syn::GenericArgument::Type(Type::FnPtr(f))) => pointer_to(f, name),
                        _ => panic!("an Option of a type other than a function"),
                    }
                }
                _ => panic!("no such type in C: {}", last.ident),
            }
        }
        Type::Ptr(pointer) => {
            let is_const = matches!(pointer.mutability, syn::PointerMutability::Const(_));
            let qualifier = if is_const { "const " } else { "" };
            declare(&pointer.elem, &format!("{qualifier}*{name}"))
        }
        Type::Array(array) => declare(&array.elem, &format!("{name}[{}]", value(&array.len))),
        _ => panic!("a type that bindgen did not use so far"),
    }
}

fn pointer_to(function: &syn::TypeFnPtr, name: &str) -> String {
    let arguments = function.inputs.iter().map(|argument| declare(&argument.ty, ""));
    returning(&function.output, &format!("(*{name})({})", list(arguments)))
}

fn returning(output: &ReturnType, declarator: &str) -> String {
    match output {
        ReturnType::Default => format!("void {declarator}"),
        ReturnType::Type(_, ty) => declare(ty, declarator),
    }
}

fn list(arguments: impl Iterator<Item = String>) -> String {
    let arguments: Vec<_> = arguments.collect();
    if arguments.is_empty() {
        "void".into()
    } else {
        arguments.join(", ")
    }
}

fn c_name(rust: &str) -> &str {
    match rust {
        "c_char" => "char",
        "c_void" => "void",
        "u8" => "uint8_t",
        "u16" => "uint16_t",
        "i32" => "int32_t",
        "u32" => "uint32_t",
        "i64" => "int64_t",
        "u64" => "uint64_t",
        "usize" => "size_t",
        "f32" => "float",
        "f64" => "double",
        "sb_stream_handle" => "struct sb_stream_handle", // an incomplete type without a typedef
        ours if ours.starts_with("sb_") => ours,
        other => panic!("no such type in C: {other}"),
    }
}

fn value(expression: &Expr) -> String {
    match expression {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.base10_digits().into(),
            _ => panic!("a constant that is not a whole number"),
        },
        Expr::Unary(negative) if matches!(negative.op, UnOp::Neg(_)) => {
            format!("-{}", value(&negative.expr))
        }
        _ => panic!("a constant that is not a plain number"),
    }
}

// --- the program ----------------------------------------------------------------

#[derive(Default)]
struct Program {
    text: String,
    functions: usize,
    constants: usize,
    fields: usize,
}

impl Program {
    fn of(bindings: &str) -> Program {
        let mut program = Program { text: HEADERS.into(), ..Program::default() };
        for item in syn::parse_file(bindings).expect("src/bindings.rs is Rust").items {
            match item {
                Item::ForeignMod(block) => block.items.iter().for_each(|f| program.function(f)),
                Item::Const(constant) if constant.ident != "_" => program.constant(&constant),
                Item::Struct(structure) => program.structure(&structure),
                // C allows a second typedef only with the same type.
                Item::Type(alias) => {
                    program.line(&format!(
                        "typedef {};",
                        declare(&alias.ty, &alias.ident.to_string())
                    ));
                }
                _ => (),
            }
        }
        program
    }

    fn line(&mut self, text: &str) {
        writeln!(self.text, "{text}").expect("a String takes any text");
    }

    fn function(&mut self, item: &ForeignItem) {
        let ForeignItem::Fn(function) = item else { panic!("the headers have no variables") };
        let name = function.sig.ident.to_string();
        let arguments = function.sig.inputs.iter().map(|input| match input {
            FnArg::Typed(argument) => declare(&argument.ty, ""),
            FnArg::Receiver(_) => panic!("{name} takes self"),
        });
        let declarator = format!("{name}({})", list(arguments));
        self.line(&format!("{};", returning(&function.sig.output, &declarator)));
        self.functions += 1;
    }

    fn constant(&mut self, item: &syn::ItemConst) {
        let name = &item.ident;
        match &*item.expr {
            Expr::Lit(syn::ExprLit { lit: Lit::ByteStr(text), .. }) => {
                let bytes = text.value().len();
                self.line(&format!("_Static_assert(sizeof {name} == {bytes}, \"{name}\");"));
            }
            number => {
                let number = value(number);
                self.line(&format!("_Static_assert({name} == {number}, \"{name}\");"));
            }
        }
        self.constants += 1;
    }

    fn structure(&mut self, item: &syn::ItemStruct) {
        let Fields::Named(fields) = &item.fields else { panic!("bindgen names fields") };
        let name = item.ident.to_string();
        // bindgen renames C's `type` to `type_`.
        let c_field = |name: &syn::Ident| name.to_string().trim_end_matches('_').to_owned();
        let names: Vec<_> =
            fields.named.iter().filter_map(|f| f.ident.as_ref()).map(c_field).collect();
        if names == ["_unused"] {
            return; // opaque
        }
        self.line(&format!("struct rust_{name} {{"));
        for (field, name) in fields.named.iter().zip(&names) {
            self.line(&format!("    {};", declare(&field.ty, name)));
        }
        self.line("};");
        self.line(&format!("CHECK_STRUCT({name})"));
        for field in &names {
            self.line(&format!("CHECK_FIELD({name}, {field})"));
            self.fields += 1;
        }
    }
}

const CHECKS: &str = r#"
#define CHECK_STRUCT(s) \
    _Static_assert(sizeof(s) == sizeof(struct rust_##s), "size of " #s); \
    _Static_assert(_Alignof(s) == _Alignof(struct rust_##s), "alignment of " #s);
#define CHECK_FIELD(s, f) \
    _Static_assert(offsetof(s, f) == offsetof(struct rust_##s, f), "offset of " #s "." #f); \
    _Static_assert(__builtin_types_compatible_p(__typeof__(((s *)0)->f), \
                                                __typeof__(((struct rust_##s *)0)->f)), \
                   "type of " #s "." #f);
"#;

fn compile(program: &str) -> Output {
    let mut compiler = Command::new(env::var("CC").as_deref().unwrap_or("cc"))
        .args([
            "-std=c11",
            "-Werror",
            "-fsyntax-only",
            "-x",
            "c",
            "-",
            "-I",
            env!("SYNCBLOB_INCLUDE"),
            "-I",
            concat!(env!("CARGO_MANIFEST_DIR"), "/c/testing/include"),
            "-I",
            concat!(env!("CARGO_MANIFEST_DIR"), "/c/comm/include"),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a C compiler: cc, or the one that CC names");
    let input = compiler.stdin.take().expect("piped");
    { input }.write_all((CHECKS.to_owned() + program).as_bytes()).expect("the compiler reads");
    compiler.wait_with_output().expect("the compiler ends")
}

#[test]
fn a_c_compiler_agrees_with_every_function_constant_and_struct() {
    let program = Program::of(BINDINGS);
    assert!(program.functions > 100 && program.constants > 50 && program.fields > 50);
    let output = compile(&program.text);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_c_compiler_finds_declarations_that_differ() {
    const WRONG: [(&str, &str, &str); 7] = [
        (
            "sb_mem_size(mem: *const sb_mem) -> usize",
            "sb_mem_size(mem: *const sb_mem) -> u32",
            "sb_mem_size",
        ),
        ("sb_mem_size(mem: *const sb_mem)", "sb_mem_size(mem: *mut sb_mem)", "sb_mem_size"),
        (
            "sb_mem_release(mem: *mut sb_mem)",
            "sb_mem_release(mem: *mut sb_mem, more: i32)",
            "sb_mem_release",
        ),
        ("SB_HEAD_SYNCED: i32 = 3", "SB_HEAD_SYNCED: i32 = 4", "SB_HEAD_SYNCED"),
        ("pub device_code: i32", "pub device_code: u32", "type of sb_error.device_code"),
        ("pub device_code: i32", "pub device_code: i64", "offset of sb_error.offset"),
        ("c_char; 240usize", "c_char; 248usize", "size of sb_error"),
    ];
    for (right, wrong, complaint) in WRONG {
        assert!(BINDINGS.contains(right), "{right}");
        let output = compile(&Program::of(&BINDINGS.replacen(right, wrong, 1)).text);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(complaint), "{wrong}: {errors}");
    }
}
