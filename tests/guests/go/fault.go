// Gives the vDSO a bad pointer, from C, and is ended by what comes of it.
package main

// #include <time.h>
// static int fault(void)
// {
//     return clock_gettime(CLOCK_MONOTONIC, (struct timespec *)8);
// }
import "C"

func main() {
	println("answered", C.fault())
}
