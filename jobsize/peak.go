package jobsize

// PeakReachedLimit reports whether a memory peak came to at least nine tenths of
// a limit, both in bytes, rounded up. A limit of 0 or less, or a negative peak,
// is not known and reaches nothing.
func PeakReachedLimit(peak, limit int64) bool {
	// ceil(limit*9/10) without overflow
	return limit > 0 && peak >= limit/10*9+(limit%10*9+9)/10
}
