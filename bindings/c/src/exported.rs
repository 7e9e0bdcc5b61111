//! The exported names of the functions that end in `...`: one jump each into `varargs.c`.

#[link(name = "sapwood_varargs", kind = "static")]
unsafe extern "C" {
    fn sapwood_varargs_stream_broadcast();
    fn sapwood_varargs_stream_send_to();
    fn sapwood_varargs_back_end_send();
    fn sapwood_varargs_back_end_send_in_wave();
    fn sapwood_varargs_stream_try_broadcast();
    fn sapwood_varargs_stream_ask();
    fn sapwood_varargs_stream_ask_async();
    fn sapwood_varargs_back_end_reply();
    fn sapwood_varargs_back_end_try_send();
    fn sapwood_varargs_packet_read();
}

macro_rules! forward {
    ($($name:ident => $target:ident;)*) => {$(
        #[allow(clashing_extern_declarations, reason = "the arguments are not looked at")]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            std::arch::naked_asm!("jmp {}", sym $target);
            #[cfg(target_arch = "aarch64")]
            std::arch::naked_asm!("b {}", sym $target);
            #[cfg(target_arch = "riscv64")]
            std::arch::naked_asm!("tail {}", sym $target);
        }
    )*};
}

forward! {
    sapwood_stream_broadcast => sapwood_varargs_stream_broadcast;
    sapwood_stream_send_to => sapwood_varargs_stream_send_to;
    sapwood_back_end_send => sapwood_varargs_back_end_send;
    sapwood_back_end_send_in_wave => sapwood_varargs_back_end_send_in_wave;
    sapwood_stream_try_broadcast => sapwood_varargs_stream_try_broadcast;
    sapwood_stream_ask => sapwood_varargs_stream_ask;
    sapwood_stream_ask_async => sapwood_varargs_stream_ask_async;
    sapwood_back_end_reply => sapwood_varargs_back_end_reply;
    sapwood_back_end_try_send => sapwood_varargs_back_end_try_send;
    sapwood_packet_read => sapwood_varargs_packet_read;
}
