// Package record keeps what is known of a run: one JSON file for each job id,
// one line, beside the log of the run's raw output.
//
// [Build] makes a record, a [Store] writes and reads it, and [Verdict] says
// whether it settles an attempt, so that a run that finished is never run twice.
// A record holds no text that an agent, an issue's author or a payload chose:
// ids, checked configuration, closed words, whole numbers and instants only.
//
// # Crashes
//
// A record is written beside its name, synced and renamed. A death at any point
// leaves the earlier record or the new one. Two things break that promise:
// [Store.NoSync], and a folder that takes no second file (it is read-only or
// full, or the name is too long), where the record is written in place, which
// the log says (record_written_in_place). Its first byte is then put right last,
// so that a record cut there reads as an [UnparseableError], never as a wrong
// value. A network file system gives neither promise, and a host whose clock is
// more than five minutes wrong can have its records taken for another job's.
//
// # Compatibility
//
// Keys are written in the order of the fields of [Record]. A key is null when
// its value is not known, or not there at all where its tag says omitempty; an
// added key keeps the version. V rises only when a field changes its meaning,
// unit or type. JobID, Attempt, Outcome, StartedAt, EndedAt, Host, Kind and
// Project keep their meaning in every version, and are all that is read of a
// record from a newer one. Records of every older version load for ever. The file
// docs/record.schema.json of this module says the same as a JSON Schema.
package record
