// Reads the wall clock and the monotonic clock from many goroutines at once.
package main

import (
	"fmt"
	"os"
	"sync"
	"time"
	_ "unsafe"
)

// What time.Since takes: the clock itself, of which package time shows differences alone.
//
//go:linkname nanotime runtime.nanotime
func nanotime() int64

func main() {
	var group sync.WaitGroup
	for worker := 0; worker < 8; worker++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for round := 0; round < 1000; round++ {
				start := time.Now()
				if time.Since(start) < 0 {
					fmt.Fprintln(os.Stderr, "the monotonic clock went back")
					os.Exit(1)
				}
			}
		}()
	}
	group.Wait()
	now := time.Now()
	fmt.Printf("realtime %d.%09d\n", now.Unix(), now.Nanosecond())
	nanos := nanotime()
	fmt.Printf("monotonic %d.%09d\n", nanos/1000000000, nanos%1000000000)
}
