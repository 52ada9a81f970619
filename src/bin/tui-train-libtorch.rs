//! The same program, linked to libtorch: `tui-train` starts it for devices that libtorch serves.

#[global_allocator]
static ALLOCATOR: tui_train::backend::allocator::Counting = tui_train::backend::allocator::Counting;

fn main() -> std::process::ExitCode {
    tui_train::cli::exit_code(tui_train::cli::main())
}
