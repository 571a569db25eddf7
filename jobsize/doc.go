// Package jobsize is the arithmetic of how much of a host one job gets: what a
// size's text means, what a size becomes as CPU shares, a cgroup v2 weight and a
// CPU quota, and whether it fits a host's budget at all.
//
// Everything here is a pure function of its arguments: no I/O, no clock, and
// nothing imported but the standard library. CPUs are counted in hundredths and
// memory in MiB, so that no binary fraction ever decides anything.
//
// A weight orders jobs that compete; it is no bound. Which of two mappings turns
// shares into a weight depends on the container runtime's version, so a weight
// that was read back is compared with [Weights], never with one number.
package jobsize
