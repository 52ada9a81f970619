//! The same program, linked to libtorch: `tui-train` starts it for devices that libtorch serves.

#[global_allocator]
static ALLOCATOR: tui_train::backend::allocator::Counting = tui_train::backend::allocator::Counting;

fn main() -> std::process::ExitCode {
    let code = tui_train::cli::main();
    // Codes of the contract are all small.
    u8::try_from(code).map_or(std::process::ExitCode::FAILURE, std::process::ExitCode::from)
}
