/* A 32-bit program without a C library: exits with 7. */
void _start(void)
{
    __asm__ volatile("int $0x80" : : "a"(1), "b"(7));
    for (;;)
        ;
}
