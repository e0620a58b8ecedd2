"""The system calls that a submission is refused, as a filter for the kernel."""

from __future__ import annotations

import struct

ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
EPERM, ENOSYS, CLONE_THREAD = 1, 38, 0x00010000
# machine: (audit architecture, clone, clone3, refused calls)
SYSTEM_CALLS = {
    "x86_64": (
        0xC000003E,
        56,
        435,
        # fork vfork socket socketpair shmget semget msgget ptrace mq_open
        # pivot_root mount umount2 unshare setns, keys, process_vm_*, perf, memfd, bpf
        # userfaultfd, io_uring, the new mount calls, pidfd_getfd
        (
            *(57, 58, 41, 53, 29, 64, 68, 101, 240, 155, 165, 166, 272, 308, 248),
            *(249, 250, 310, 311, 298, 319, 447, 321, 323),
            *(425, 426, 427, 428, 429, 430, 432, 442, 438),
        ),
    ),
    "aarch64": (
        0xC00000B7,
        220,
        435,
        (
            *(198, 199, 194, 190, 186, 117, 180, 41, 40, 39, 97, 268, 217),
            *(218, 219, 270, 271, 241, 279, 447, 280, 282),
            *(425, 426, 427, 428, 429, 430, 432, 442, 438),
        ),
    ),
}


def seccomp_filter(machine: str) -> bytes:
    """Write the filter: threads yes; processes, sockets and hidden memory no."""
    architecture, clone, clone3, refused = SYSTEM_CALLS[machine]
    load, equal, at_least, has_bits, give = 0x20, 0x15, 0x35, 0x45, 0x06
    program = [
        (load, 0, 0, 4),
        (equal, 1, 0, architecture),
        (give, 0, 0, KILL),
        (load, 0, 0, 0),
        (at_least, 0, 1, 0x40000000),
        (give, 0, 0, KILL),
        (equal, 0, 1, clone3),
        (give, 0, 0, REFUSE | ENOSYS),
    ]
    for number in refused:
        program += [(equal, 0, 1, number), (give, 0, 0, REFUSE | EPERM)]
    program += [
        (equal, 1, 0, clone),
        (give, 0, 0, ALLOW),
        (load, 0, 0, 16),  # the flags of clone
        (has_bits, 1, 0, CLONE_THREAD),
        (give, 0, 0, REFUSE | EPERM),
        (give, 0, 0, ALLOW),
    ]
    return b"".join(struct.pack("HBBI", *step) for step in program)
