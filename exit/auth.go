package exit

// An Auth says what the signature check of a run's output came to.
type Auth string

// The answers of a signature check.
const (
	Unchecked  Auth = ""           // no key was issued, nothing was checked
	Verified   Auth = "verified"   // at least one line verified
	Unverified Auth = "unverified" // no line verified; reads as if the run wrote none
)
