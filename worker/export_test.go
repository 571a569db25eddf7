package worker

// SetStep sets what is called before each step of a job's life.
func (c *Config) SetStep(step func(name string)) { c.step = step }

// SetRandom sets the source of jitter, in [0, 1).
func (c *Config) SetRandom(random func() float64) { c.random = random }
