# SPDX-License-Identifier: MIT
"""Small files in the layouts of other tools, with numbers of our own.

The name of each begins with its format's (`+`: a variant of it).
"""

from __future__ import annotations

import json
import struct

SYSINFO = {
    "sysname": "Linux",
    "nodename": "board",
    "release": "6.1.0-rt",
    "version": "#1 SMP PREEMPT_RT",
    "machine": "aarch64",
}


def rt_tests(command: str, **more: object) -> str:
    """A document of rt-tests' --json."""
    return json.dumps(
        {
            "file_version": 1,
            "cmdline:": command,
            "rt_test_version:": "2.80",
            "start_time": "Wed, 29 Jan 2025 14:26:40 +0000",
            "end_time": "Wed, 29 Jan 2025 16:26:40 +0000",
            "return_code": 0,
            "sysinfo": {**SYSINFO, "realtime": 1},
            **more,
        },
        indent=2,
    )


def _cyclictest_rows() -> str:
    rows = "".join(
        f"{value:06d} {count:06d}\t{2 * count:06d}\n" for value, count in ((4, 10), (5, 80), (6, 9))
    )
    return (
        "# /dev/cpu_dma_latency set to 0us\n# Histogram\n"
        + rows
        + "# Total: 000000099 000000198\n# Min Latencies: 00004 00004\n# Avg Latencies: 00005 00005\n"
        "# Max Latencies: 00006 00031\n# Histogram Overflows: 00000 00002\n# Histogram Overflow at "
        "cycle number:\n# Thread 0:\n# Thread 1: 00021 00038\n"
    )


FILES: dict[str, str | bytes] = {
    "cyclictest.txt": _cyclictest_rows(),
    "rt-tests.json": rt_tests(
        "cyclictest -m -p95 -i500 -h40 -q --json=x",
        num_threads=1,
        resolution_in_ns=0,
        thread={
            "0": {
                "histogram": {"3": 50, "9": 4},
                "cycles": 60,
                "min": 3,
                "max": 77,
                "avg": 8.5,
                "cpu": 2,
                "node": 0,
            }
        },
    ),
    "rt-tests+oslat.json": rt_tests(
        "oslat -D 7200",
        num_threads=1,
        thread={
            "0": {
                "cpu": 3,
                "freq": 2400,
                "min": 1,
                "avg": 1.003,
                "max": 45,
                "duration": 7200,
                "histogram": {"1": 1_000_000, "2": 100, "3": 0, "4": 9},
            },
        },
    ),
    "rt-tests+pmqtest.json": rt_tests(
        "pmqtest -Sp80 -l 5000",
        num_threads=1,
        thread={
            "0": {
                "sender": {"cpu": 0, "priority": 80, "samples": 5000, "interval": 1000},
                "receiver": {"cpu": 1, "priority": 79, "timeoutcount": 0, "min": 2, "avg": 3.5, "max": 60},
            }
        },
    ),
    "rt-tests+signaltest.json": rt_tests(
        "signaltest -t 2",
        num_threads=2,
        thread={"0": {"cycles": 300, "min": 4, "max": 70, "avg": 5.5, "cpu": 0}},
    ),
    "rt-tests+pi_stress.json": rt_tests("pi_stress --duration=60", inversion=0),
    "rt-tests+migrate.json": rt_tests(
        "rt-migrate-test",
        num_threads=1,
        thread={"0": {"prio": 2, "min": 20, "avg": 21.5, "max": 60, "total": 1075}},
    ),
    "rtla.txt": """# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 02:00:00
Index   IRQ-000   Thr-000
0            80         0
3            15        70
7             5        29
over:         0         1
count:      100       100
min:          0         3
avg:          1         4
max:          7        55
""",
    "rtla+osnoise.txt": """                                          Operating System Noise
duration:   0 00:01:00 | time is in us
CPU Period       Runtime        Noise  % CPU Aval   Max Noise   Max Single          HW          NMI          IRQ      Softirq       Thread
  0 #61         54900000       300000    99.45355        7000           55         540            0        53000         1600           14
""",
    "rtla+top.txt": """                                     Timer Latency
    0 00:00:12   |          IRQ Timer Latency (us)        |         Thread Timer Latency (us)
  CPU COUNT      |      cur       min       avg       max |      cur       min       avg       max
    1 #12000     |        0         0         1        15 |       10         3         9        31
""",
    "rtla+hwnoise.txt": """                                        Hardware-related Noise
duration:   0 00:10:00 | time is in us
CPU Period       Runtime        Noise  % CPU Aval   Max Noise   Max Single          HW          NMI
  2 #540       540000000          217    99.99995           9            7          11           68
  5 #540       540000000           93    99.99998           4            4           6           71
""",
    "rtla+untitled.txt": """Index   IRQ-002   Thr-002   Usr-002   IRQ-005   Thr-005   Usr-005
3             1         0         0         0         0         0
31            0         1         0         1         0         0
44            0         0         1         0         0         0
61            0         0         0         0         1         0
over:         0         0         0         0         0         0
count:        1         1         1         1         1         0
min:          3        31        44        31        61 18446744073709551615
avg:          3        31        44        31        61         -
max:          3        31        44        31        61         0
rtla timerlat hit stop tracing
  Thread latency:\t\t\t\t\t    61.12 us (100%)
""",
    "oslat.txt": """cmd to run: oslat -D 20 --rtprio 1 --cpu-list 2,3 --cpu-main-thread 0
oslat V 2.30
Total runtime: \t\t20 seconds
Thread priority: \tSCHED_FIFO:1
CPU list: \t\t2,3

Test starts...
Test completed.

        Core:\t 2 3
    CPU Freq:\t 2200 2200 (Mhz)
    001 (us):\t 700001 690002
    002 (us):\t 31 17
    003 (us):\t 0 4
    004 (us):\t 2 6 (including overflows)
     Minimum:\t 1 1 (us)
     Average:\t 1.000 1.000 (us)
     Maximum:\t 4 88 (us)
     Max-Min:\t 3 87 (us)
    Duration:\t 20.004 20.004 (sec)
""",
    "rtai.txt": """RTAI Testsuite - KERNEL latency (all data in nanoseconds)
# period = 200000 (ns)
RTH|    lat min|    ovl min|    lat avg|    lat max|    ovl max|   overruns
RTD|      -1203|      -1203|        417|       6120|       6120|          0
RTD|       -950|      -1203|        401|       9301|       9301|          0
""",
    "hwlatdetect.txt": """hwlatdetect:  test duration 7200 seconds
   detector: tracer
   parameters:
        CPU list:          0-3
        Latency threshold: 10us
        Sample window:     1000000us
        Sample width:      250000us
     Non-sampling period:  750000us
        Output File:       None

Starting test
test finished
Max Latency: 30us
Samples recorded: 3
Samples exceeding threshold: 3
ts: 1738160800.346151918, delta:nan, inner:12, outer:0, cpu:1, count:1
ts: 1738161400.550312752, delta:600.204161, inner:0, outer:30, cpu:1
ts: 1738167900.549331178, delta:6499.999018, inner:19, outer:18, cpu:3
""",
    "jitterdebugger.json": json.dumps(
        {
            "version": 3,
            "sysinfo": {**SYSINFO, "cpus_online": 4, "resolution_in_ns": 1000},
            "cpu": {
                "0": {
                    "histogram": {"3": 90, "4": 9, "40": 1},
                    "count": 100,
                    "min": 3,
                    "max": 40,
                    "avg": 3.46,
                },
                "2": {"histogram": {"2": 50, "5": 46}, "count": 100, "min": 2, "max": 90, "avg": 6.1},
            },
        },
        indent=2,
    ),
    "jitterdebugger-csv.csv": "0;1738160800.000000001;3\n1;1738160800.000000002;4\n0;1738168000.100000001;5\n",
    "jitterdebugger-raw.raw": b"".join(
        struct.pack("<IqqQ", at % 2, 5000 + at, 7, 3 + at % 4) for at in range(40)
    ),
    "xenomai.txt": """== Sampling period: 100 us
== Test mode: in-kernel periodic task
== All results in microseconds
warming up...
RTT|  00:00:01  (in-kernel periodic task, 100 us period, priority 99)
RTH|----lat min|----lat avg|----lat max|-overrun|---msw|---lat best|--lat worst
RTD|     -0.120|      2.100|      8.500|       0|     0|     -0.120|      8.500
RTD|      0.300|      2.500|     21.250|       1|     0|     -0.120|     21.250
RTD|      0.310|      2.000|      9.000|       1|     0|     -0.120|     21.250
---|-----------|-----------|-----------|--------|------|-------------------------
RTS|     -0.120|      2.200|     21.250|       1|     0|    00:00:03/00:00:03
""",
    "xenomai+2.txt": """== Sampling period: 250 us
== Test mode: periodic user-mode task
== All results in microseconds
warming up...
RTT|  00:00:01  (periodic user-mode task, 250 us period, priority 99)
RTH|-----lat min|-----lat avg|-----lat max|-overrun|----lat best|---lat worst
RTD|       1.210|       2.300|      14.020|       0|       1.210|      14.020
RTD|       1.330|       2.250|      11.400|       0|       1.210|      14.020
""",
    "xenomai+h.txt": """RTT|  00:00:01  (periodic user-mode task, 100 us period, priority 99)
RTD|      0.300|      2.100|     21.250|       0|     0|      0.300|     21.250
---|--param|----range-|--samples
HSD|    min|   0 -  1 |        1
---|--param|----range-|--samples
HSD|    avg|   0 -  1 |       40
HSD|    avg|   2 -  3 |       55
HSD|    avg|   9 - 10 |        5
HSH|--param|--samples-|--average--|---stddev--
HSS|    min|         1|      0.000|      0.000
HSS|    avg|       100|      1.550|      1.900
HSS|    max|         1|     21.000|      0.000
RTS|      0.300|      2.100|     21.250|       0|     0|    00:00:01/00:00:01
""",
    "xenomai-gnuplot.txt": """# 02:00:00 (periodic user-mode task, 100 us period, priority 99)
# ----lat min|----lat avg|----lat max|-overrun|---msw|
#       0.850|      1.300|      3.900|       0|     0|
0 1
0.5 10
1.5 81
2.5 1
3.5 10
4 1
""",
    "latmus.txt": """== latmus started for period=1000 microseconds
warming up on CPU1...
RTT|  00:00:01  (user, 1000 us period, priority 98, CPU1)
RTH|----lat min|----lat avg|----lat max|-overrun|---msw|---lat best|--lat worst
RTD|      1.200|      1.500|      4.000|       0|     0|      1.200|      4.000
RTD|      1.100|      1.600|      9.000|       0|     0|      1.100|      9.000
---|-----------|-----------|-----------|--------|------|-------------------------
RTS|      1.100|      1.550|      9.000|       0|     0|    00:00:02/00:00:02
""",
    "latmus-gnuplot.txt": """# test started on: Wed Jan 29 14:26:40 2025
# Linux version 6.1.0-evl (user@host) (gcc 12) #3 SMP IRQPIPE
# console=ttyS0 isolcpus=1
# libevl version: evl.0.44 -- #a1b2c3d (2024-01-01 10:00:00 +0200)
# sampling period: 1000 microseconds
# clock gravity: 1000i 2000k 3000u
# clocksource: arch_sys_counter
# vDSO access: architected
# context: user
# thread priority: 98
# thread affinity: CPU1
# C-state restricted
# duration (hhmmss): 00:00:01
# peak (hhmmss): 00:00:00
# OVERRUNS: 2
# min latency: 1.443
# avg latency: 4.801
# max latency: 410.500
# sample count: 1000
1 100
2 890
3 0
199+ 10
""",
    "rteval.xml": """<?xml version="1.0" encoding="UTF-8"?>
<rteval version="3.8">
  <run_info days="0" hours="2" minutes="0" seconds="0"><date>2025-01-29</date></run_info>
  <SystemInfo><uname><node>board</node><kernel is_RT="1">6.1.0-rt</kernel><arch>x86_64</arch></uname></SystemInfo>
  <Measurements><Profile loads="1" parallel="0">
    <cyclictest command_line="cyclictest -i100 -qmu -h 3500 -p95">
      <system description="(2 cores) some model"><statistics><samples>150</samples></statistics></system>
      <core id="0" priority="95">
        <statistics><samples>100</samples><minimum unit="us">2</minimum><maximum unit="us">20</maximum><mean unit="us">3.1</mean></statistics>
        <histogram nbuckets="3"><bucket index="2" value="90"/><bucket index="8" value="9"/><bucket index="20" value="1"/></histogram>
      </core>
      <core id="1" priority="95">
        <statistics><samples>50</samples><minimum unit="us">3</minimum><maximum unit="us">3</maximum></statistics>
        <histogram nbuckets="1"><bucket index="3" value="50"/></histogram>
      </core>
    </cyclictest>
    <timerlat command_line="rtla timerlat hist -P f:95 -u --no-summary">
      <core id="0" priority="95">
        <statistics><samples>30</samples><minimum unit="us">1</minimum><maximum unit="us">9</maximum></statistics>
        <histogram nbuckets="2"><bucket index="1" value="20"/><bucket index="9" value="10"/></histogram>
      </core>
      <stoptrace_report CPU="0"><IRQ_handler_delay value="3.5" unit="us"/><Blocking_thread>worker</Blocking_thread></stoptrace_report>
    </timerlat>
  </Profile></Measurements>
</rteval>
""",
}
