/* A 32-bit program without a C library: asks to be traced, and exits with 7 if that is refused. */
static int call(int number, int first)
{
    int answer;
    __asm__ volatile("int $0x80" : "=a"(answer) : "a"(number), "b"(first), "c"(0), "d"(0), "S"(0) : "memory");
    return answer;
}

void _start(void)
{
    call(1, call(26, 0) == -1 ? 7 : 8);
    for (;;)
        ;
}
