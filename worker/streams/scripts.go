package streams

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"

	"github.com/redis/rueidis"
)

// The scripts, each one change of state. Each is preceded by prelude.lua.
var (
	//go:embed prelude.lua
	preludeText string
	//go:embed submit.lua
	submitText string
	//go:embed claim.lua
	claimText string
	//go:embed extend.lua
	extendText string
	//go:embed settle.lua
	settleText string
	//go:embed cancel.lua
	cancelText string
	//go:embed requeue.lua
	requeueText string
)

type scripts struct {
	submit, extend, settle, cancel, requeue *rueidis.Lua
	// claim is not of the client's type: that a server does not know it says
	// something, see Queue.sendClaim.
	claim, claimDigest string
}

func newScripts() scripts {
	script := func(text string) *rueidis.Lua { return rueidis.NewLuaScript(preludeText + text) }
	claim := preludeText + claimText
	digest := sha1.Sum([]byte(claim)) // how EVALSHA names a script
	return scripts{
		submit: script(submitText), extend: script(extendText),
		settle: script(settleText), cancel: script(cancelText), requeue: script(requeueText),
		claim: claim, claimDigest: hex.EncodeToString(digest[:]),
	}
}
