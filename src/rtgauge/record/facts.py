# SPDX-License-Identifier: MIT
"""The facts of a target: its hardware, kernel and settings (system.json).

A fact that could not be read is None here and "unknown" in JSON. "none" means that the machine lacks the
feature. A CPU list is a text like `0-3,6`, or "" for no CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from rtgauge.record.strict_model import Model

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

UNKNOWN = "unknown"
Nothing = Literal["none"]
Purpose = Literal["xenomai", "preempt-rt", "stock"]
"""The kinds of kernel that the audit distinguishes."""


class FactPart(Model):
    """Base of all facts: it writes the fields that were set, and keeps other versions' unknown keys."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _read(cls, data: object) -> object:
        """Treat a part whose value is "unknown" as left out."""
        if not isinstance(data, dict):
            return data
        given = {
            name: None if value == UNKNOWN else value
            for name, value in cast("dict[str, object]", data).items()
        }
        parts = {name for name, key in cls.model_fields.items() if key.default_factory is not None}
        return {name: value for name, value in given.items() if value is not None or name not in parts}

    @model_serializer(mode="wrap")
    def _write(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written = cast("dict[str, Any]", handler(self))
        return {
            name: UNKNOWN if value is None else value
            for name, value in written.items()
            if name in self.model_fields_set
        }

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core_schema)
        for key in handler.resolve_ref_schema(schema).get("properties", {}).values():
            for choice in key.get("anyOf", []):
                if choice == {"type": "null"}:
                    choice.clear()
                    choice["const"] = UNKNOWN
            if key.get("default", "") is None:
                del key["default"]
        return schema


class Identity(FactPart):
    """Values that identify the machine across boots, kernels and host names."""

    source: str | None = None
    """Where the serial number comes from: dmi, device-tree, soc or machine-id."""
    hash: str | None = None
    """Hash of the serial number: the first 32 hexadecimal digits of its SHA-256."""


class Preemption(FactPart):
    """The kernel's preemption model."""

    model: str | None = None
    """none, voluntary, full, lazy or PREEMPT_RT; two of them if rtgauge cannot tell which one is in force."""
    sources: dict[str, str | dict[str, str | int]] = Field(
        default_factory=dict[str, "str | dict[str, str | int]"]
    )
    """What each source reports."""


class Gravity(FactPart):
    """How long before a release Cobalt's timer fires (ns)."""

    irq_ns: int | None = None
    kernel_ns: int | None = None
    user_ns: int | None = None


class RtaiCalibration(FactPart):
    """RTAI's calibration: its time base, how early timers fire, and how long it takes to set one."""

    time_base_hz: int | None = None
    user_latency_ns: int | None = None
    kernel_latency_ns: int | None = None
    setup_to_firing_ns: int | None = None


class ForcedSoft(FactPart):
    """How often RTAI has moved a task to Linux since the module was loaded."""

    traps: int | None = None
    system_calls: int | None = None


class RealTimeCore(FactPart):
    """The co-kernel, if any: Xenomai Cobalt, EVL or RTAI."""

    name: str | None = None
    version: str | None = None
    cpus: str | None = None
    """The CPUs that the co-kernel may use."""
    affinity: str | None = None
    """CPUs on which the threads of the co-kernel run by default."""
    state: str | None = None
    pipeline: str | None = None
    gravity: Gravity = Field(default_factory=Gravity)
    timer: str | None = None
    clock: str | None = None
    clock_watchdog: str | None = None
    allowed_group: str | None = None
    """ID of the group whose members may use the co-kernel; null: only root may use it."""
    smi: str | None = None
    """State of Cobalt's workaround for system management interrupts."""
    isolated_cpus: str | None = None
    modules: list[str] | None = None
    scheduler: str | None = None
    cpu_number: int | None = None
    calibration: RtaiCalibration = Field(default_factory=RtaiCalibration)
    tasks: int | None = None
    forced_soft: ForcedSoft | None = None


class Kernel(FactPart):
    """The running kernel."""

    release: str | None = None
    version: str | None = None
    architecture: str | None = None
    preemption: Preemption = Field(default_factory=Preemption)
    cmdline: str | None = None
    tainted: int | None = None
    lockdown: str | None = None
    xenomai: str | None = None
    hz: int | None = None
    rt_group_sched: bool | None = None
    steal_excluded: bool | None = None
    """Whether the kernel's CPU time of a task excludes time that a hypervisor took."""
    config: str | None = None
    """File that contains the kernel's configuration."""
    extension: RealTimeCore = Field(default_factory=RealTimeCore)


class Frequency(FactPart):
    """Frequency scaling, with the CPUs of each governor and driver."""

    governors: dict[str, str] | Nothing | None = None
    drivers: dict[str, str] | Nothing | None = None
    min_khz: int | None = None
    max_khz: int | None = None
    turbo: bool | None = None


class IdleState(FactPart):
    """A C-state, and the CPUs on which it is disabled."""

    name: str | None = None
    latency_us: int | None = None
    disabled: str | None = None


class Idle(FactPart):
    """The processors' idle states."""

    deepest_latency_us: int | Nothing | None = None
    """Exit latency of the deepest C-state that an online CPU may enter."""
    driver: str | None = None
    governor: str | None = None
    states: list[IdleState] | Nothing | None = None


class Cache(FactPart):
    """A cache: its size as the kernel prints it, and the CPUs that share it."""

    level: int | None = None
    type: str | None = None
    size: str | None = None
    cpus: str | None = None


class Topology(FactPart):
    """How many processors are online, and which resources they share."""

    packages: int | None = None
    cores: int | None = None
    threads_per_core: int | None = None
    smt_siblings: list[str] | None = None
    """CPUs of each core that has more than one CPU."""
    caches: list[Cache] | None = None
    numa_nodes: dict[str, str] | None = None


class Processors(FactPart):
    """The machine's processors."""

    model: str | None = None
    board: str | None = None
    online: str | None = None
    online_count: int | None = None
    possible: str | None = None
    possible_count: int | None = None
    isolated: str | None = None
    """CPUs that isolcpus= or an isolated partition of a control group takes from the scheduler."""
    isolated_count: int | None = None
    nohz_full: str | None = None
    nohz_full_count: int | None = None
    smt_active: bool | None = None
    smt_control: str | None = None
    features: list[str] | None = None
    resource_control: list[str] | None = None
    """What the kernel can divide among groups of tasks (resctrl): the caches L2 and L3, and MB, the memory's
    bandwidth.
    """
    frequency: Frequency = Field(default_factory=Frequency)
    idle: Idle = Field(default_factory=Idle)
    topology: Topology = Field(default_factory=Topology)


class PresentDeployment(FactPart):
    """The deployment in force on the machine."""

    name: str | None = None
    """Name of the deployment: CHM, HM, HMI, M, MI or Single, or a combination of their letters, such as CM.
    """
    of_the_six: bool | None = None
    c_states: bool | None = None
    smt: bool | None = None
    multicore: bool | None = None
    isolated: bool | None = None
    held: str | None = None
    """Name of the deployment that `rtgauge deploy apply` set."""


class Memory(FactPart):
    """Memory, and the settings of huge pages, page merging and migration."""

    total_bytes: int | None = None
    available_bytes: int | None = None
    swap_total_bytes: int | None = None
    swap_free_bytes: int | None = None
    transparent_hugepages: str | None = None
    thp_defrag: str | None = None
    ksm: str | None = None
    numa_balancing: str | None = None
    swappiness: str | None = None
    swaps: list[str] | None = None


class ClockSource(FactPart):
    """The kernel's clock sources."""

    current: str | None = None
    available: list[str] | None = None


class Timers(FactPart):
    """The kernel's timers."""

    resolution_ns: int | None = None


class Virtualization(FactPart):
    """Whether the machine is virtual, and whether its processor is emulated."""

    virtual: bool | None = None
    hypervisor: str | None = None
    emulated: bool | None = None
    evidence: list[str] = Field(default_factory=list[str])
    instruction_ns: int | None = None
    """For an emulated processor, how far each instruction advances its clock; 0: the clock follows real time.
    """

    @property
    def kind(self) -> bool | str | None:
        """The hypervisor's name, True if the name is unknown, False on real hardware; None if it is unknown
        whether the machine is virtual.
        """
        return (self.hypervisor or True) if self.virtual else self.virtual


class Firmware(FactPart):
    """The firmware, the microcode, and the mitigation of each vulnerability."""

    vendor: str | None = None
    version: str | None = None
    date: str | None = None
    system: str | None = None
    board: str | None = None
    microcode: list[str] | None = None
    mitigations: dict[str, str] | None = None
    mitigated: list[str] | None = None


class FairServer(FactPart):
    """One of the kernel's deadline servers, which give fair or ext tasks time on a CPU."""

    runtime_ns: int | None = None
    period_ns: int | None = None


class ControlGroup(FactPart):
    """The control group of the process that read the facts. In version 1, its limit is the lowest among its
    parents.
    """

    version: str | None = None
    path: str | None = None
    rt_runtime_us: int | Nothing | None = None
    rt_period_us: int | Nothing | None = None


class Limits(FactPart):
    """The limits of the process that read the facts."""

    cpu_quota: float | Nothing | None = None
    """How many CPUs' worth of time the control group may use, such as 1.5."""
    cpus_allowed: str | None = None
    cpuset_partition: str | None = None
    rtprio: int | Literal["unlimited"] | None = None
    memlock_bytes: int | Literal["unlimited"] | None = None


class Scheduling(FactPart):
    """How much time the kernel withholds from real-time tasks."""

    rt_runtime_us: int | None = None
    rt_period_us: int | None = None
    fair_server: dict[str, FairServer] | Nothing | None = None
    """Settings of the fair server (a deadline server) of each CPU."""
    ext_server: dict[str, FairServer] | Nothing | None = None
    """Settings of the server for the tasks of a scheduler extension."""
    scheduler_extension: str | None = None
    """The scheduler extension (sched_ext) at work; none: there is none."""
    cgroup: ControlGroup = Field(default_factory=ControlGroup)
    limits: Limits = Field(default_factory=Limits)


class InterruptLine(FactPart):
    """An interrupt: its devices, the CPUs that may handle it, and the CPUs that do."""

    devices: str | None = None
    allowed: str | None = None
    effective: str | None = None
    managed: bool | None = None
    """Whether the kernel manages the affinity of the interrupt."""

    @property
    def cpus(self) -> str | None:
        """The CPUs that handle the interrupt, "" if no CPU does; None if unknown."""
        return self.effective or self.allowed


class Interrupts(FactPart):
    """The CPUs that handle interrupts and the kernel's deferred work."""

    default_affinity: str | None = None
    workqueue_cpus: str | None = None
    watchdog_cpus: str | None = None
    lines: dict[str, InterruptLine] | None = None
    """IRQ number -> interrupt."""
    on_isolated: list[str] | None = None
    """IRQs that an isolated CPU handles."""


class Coalescing(FactPart):
    """How long, and for how many packets, a network card waits before it interrupts; 0: it does not. "none":
    its driver has no such setting.
    """

    adaptive_rx: bool | Nothing | None = None
    adaptive_tx: bool | Nothing | None = None
    rx_us: int | Nothing | None = None
    rx_frames: int | Nothing | None = None
    tx_us: int | Nothing | None = None
    tx_frames: int | Nothing | None = None


class Napi(FactPart):
    """A NAPI instance, which polls queues of a network interface."""

    id: int
    irq: int | None = None
    pid: int | None = None
    """Its thread; unknown if a softirq polls."""
    threaded: bool | None = None
    defer_hard_irqs: int | None = None
    gro_flush_timeout_ns: int | None = None
    irq_suspend_timeout_ns: int | None = None
    queues: list[str] = Field(default_factory=list[str])


class NetworkInterface(FactPart):
    """The network interface that a program uses."""

    name: str | None = None
    driver: str | None = None
    """Of the card, or the kind of a virtual interface."""
    virtual: bool | None = None
    """Whether it has no device."""
    speed_mbit: int | None = None
    mtu: int | None = None
    qdisc: str | None = None
    """The root queueing discipline."""
    rx_queues: int | None = None
    tx_queues: int | None = None
    channels: int | None = None
    """Queues in use."""
    irqs: list[str] | None = None
    irq_cpus: str | None = None
    """The CPUs that handle its interrupts."""
    napi: list[Napi] | None = None
    threaded: bool | None = None
    """Whether threads poll all queues."""
    napi_priority: int | None = None
    """The lowest real-time priority of its NAPI threads; 0: at least one of them has no real-time policy."""
    gro_flush_timeout_ns: int | None = None
    defer_hard_irqs: int | None = None
    coalescing: Coalescing = Field(default_factory=Coalescing)
    energy_efficient: bool | Nothing | None = None
    """Whether Energy-Efficient Ethernet is on."""
    rx_ring: int | None = None
    tx_ring: int | None = None
    rps_cpus: str | None = None
    """The CPUs to which RPS steers packets."""
    xps_cpus: str | None = None
    """The CPUs in the masks of XPS."""
    rfs_flows: int | None = None
    """Flows that RFS follows in a queue."""
    gathers: list[str] | None = None
    """Features of the card that gather received packets: lro, gro-hw."""
    flow_control: str | None = None
    """Pause frames in use: both, receive, send or none."""
    stamps: list[str] | None = None
    """Time stamps that it can take."""
    hardware_clock: str | None = None
    """Such as ptp0, or none."""


class RealTimeThread(FactPart):
    """Real-time threads that share a name, a policy and a priority."""

    name: str
    policy: str
    priority: int
    kernel: bool
    count: int
    processes: list[int]


class Tasks(FactPart):
    """The threads with a real-time policy, and the CPUs whose RCU callbacks run in threads of their own."""

    realtime: list[RealTimeThread] | None = None
    rcu_offloaded: str | None = None


class AuditSummary(FactPart):
    """The result of an audit: titles of failed rules by severity, and numbers of unknown and met rules."""

    purpose: Purpose
    serious: list[str]
    moderate: list[str]
    minor: list[str]
    unknown: int
    ok: int


def _as_tuple(written: object) -> object:
    """Turn lists into tuples, because strict validation refuses lists."""
    return tuple(cast("list[object]", written)) if isinstance(written, list) else written


Pair = Annotated[tuple[int, int], BeforeValidator(_as_tuple)]


class Calibration(Model):
    """The resolution of a clock and the cost of reading it (ns)."""

    clock: str
    resolution_ns: int | None
    count: int
    min_ns: int | None
    p50_ns: int | None
    p99_ns: int | None
    mean_ns: float | None
    max_ns: int | None
    smallest_step_ns: int | None
    bins: list[Pair] = Field(default_factory=list[Pair])
    error: str | None = None


class Facts(FactPart):
    """All facts of a target."""

    host: str | None = None
    os: str | None = None
    boot_id: str | None = None
    identity: Identity = Field(default_factory=Identity)
    kernel: Kernel = Field(default_factory=Kernel)
    cpu: Processors = Field(default_factory=Processors)
    deployment: PresentDeployment = Field(default_factory=PresentDeployment)
    memory: Memory = Field(default_factory=Memory)
    clock_source: ClockSource = Field(default_factory=ClockSource)
    timers: Timers = Field(default_factory=Timers)
    machine: Virtualization = Field(default_factory=Virtualization)
    firmware: Firmware = Field(default_factory=Firmware)
    scheduling: Scheduling = Field(default_factory=Scheduling)
    interrupts: Interrupts = Field(default_factory=Interrupts)
    tasks: Tasks = Field(default_factory=Tasks)
    network: NetworkInterface = Field(default_factory=NetworkInterface)
    steal_ns_since_boot: int | None = None
    audit: AuditSummary | None = None
    """What the audit of the machine's settings found before the run."""
    calibrations: list[Calibration] = Field(default_factory=list[Calibration])

    def as_json(self) -> dict[str, Any]:
        """Return the content of system.json: only recorded facts, "unknown" for a fact that could not be
        read.
        """
        return self.model_dump(mode="json")
