// Reads the clocks from Go and, through cgo, from C.
package main

// #include <time.h>
// static long long seconds(void)
// {
//     struct timespec now;
//     return clock_gettime(CLOCK_MONOTONIC, &now) ? -1 : now.tv_sec * 1000000000LL + now.tv_nsec;
// }
import "C"

import (
	"fmt"
	"os"
	"time"
)

func main() {
	last := int64(0)
	for round := 0; round < 1000; round++ {
		now := int64(C.seconds())
		if now < last {
			fmt.Fprintln(os.Stderr, "the monotonic clock went back")
			os.Exit(1)
		}
		last = now
	}
	now := time.Now()
	fmt.Printf("realtime %d.%09d\n", now.Unix(), now.Nanosecond())
	fmt.Printf("monotonic %d.%09d\n", last/1000000000, last%1000000000)
}
