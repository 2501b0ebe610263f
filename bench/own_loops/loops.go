// SPDX-License-Identifier: MIT

// A loop as people write it in Go, with a ticker. Its account has the form of cycle_log.h.
//
//	go-ticker --log FILE --period-us N --work-us N
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
	_ "unsafe"
)

// The clock that time.Now() reads: CLOCK_MONOTONIC.
//
//go:linkname nanotime runtime.nanotime
func nanotime() int64

var log []int64

func loop(periodNs, workNs int64) {
	due := nanotime() + periodNs
	ticker := time.NewTicker(time.Duration(periodNs))
	for range ticker.C {
		start := nanotime()
		for nanotime() < start+workNs {
		}
		log = append(log, due, start, nanotime(), 0)
		due += periodNs
		for due+periodNs <= start { // the ticker drops ticks that nobody takes
			log = append(log, due, 0, 0, 2)
			due += periodNs
		}
	}
}

func main() {
	var path string
	numbers := map[string]int64{}
	for i := 2; i+1 < len(os.Args); i += 2 {
		if os.Args[i] == "--log" {
			path = os.Args[i+1]
		} else {
			numbers[os.Args[i]], _ = strconv.ParseInt(os.Args[i+1], 10, 64)
		}
	}
	log = make([]int64, 0, 1600000)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go loop(numbers["--period-us"]*1000, numbers["--work-us"]*1000)
	fmt.Println("ready")
	<-stop
	var out bytes.Buffer
	if binary.Write(&out, binary.LittleEndian, log) != nil || os.WriteFile(path, out.Bytes(), 0o644) != nil {
		os.Exit(1)
	}
}
