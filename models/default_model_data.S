// The bytes of the default model, as they are.
        .section .rodata
        .balign 64
        .globl weft_default_model_begin
weft_default_model_begin:
        .incbin "models/austen-Q8_0.gguf"
        .globl weft_default_model_end
weft_default_model_end:
        .byte 0
        .section .note.GNU-stack, "", %progbits
