package streams

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"

	"github.com/redis/rueidis"
)

// The parts of the scripts. Each script is one change of state, or an end and the
// claim after it.
var (
	//go:embed prelude.lua
	preludeText string
	//go:embed submit.lua
	submitText string
	//go:embed take.lua
	takeText string
	//go:embed claim.lua
	claimText string
	//go:embed extend.lua
	extendText string
	//go:embed settle.lua
	settleText string
	//go:embed settle_claim.lua
	settleClaimText string
	//go:embed cancel.lua
	cancelText string
	//go:embed requeue.lua
	requeueText string
)

type scripts struct {
	submit, extend, settle, cancel, requeue *rueidis.Lua
	claim, settleClaim                      claimScript
}

func newScripts() scripts {
	script := func(text string) *rueidis.Lua { return rueidis.NewLuaScript(preludeText + text) }
	return scripts{
		submit: script(submitText), extend: script(extendText), cancel: script(cancelText), requeue: script(requeueText),
		settle:      script(settleText + "return settle(KEYS, ARGV)"),
		claim:       newClaimScript(preludeText + takeText + claimText),
		settleClaim: newClaimScript(preludeText + takeText + settleText + settleClaimText),
	}
}

// A claimScript claims. It is not of the client's type, because it has to know
// when a server does not know it: that one has been started anew, or is another
// one, and then the script has to look what server it is.
type claimScript struct{ text, digest string }

func newClaimScript(text string) claimScript {
	digest := sha1.Sum([]byte(text)) // how EVALSHA names a script
	return claimScript{text, hex.EncodeToString(digest[:])}
}

// exec carries the script out. args gives its arguments, with or without a look
// at the server.
func (s claimScript) exec(ctx context.Context, client rueidis.Client, keys []string, look bool, args func(look bool) []string) rueidis.RedisResult {
	answer := client.Do(ctx, s.command(client, keys, args(look)))
	if s.unknown(answer) {
		answer = client.Do(ctx, client.B().Eval().Script(s.text).Numkeys(int64(len(keys))).
			Key(keys...).Arg(args(true)...).Build())
	}
	return answer
}

// command is the call of a script that the server knows.
func (s claimScript) command(client rueidis.Client, keys, args []string) rueidis.Completed {
	return client.B().Evalsha().Sha1(s.digest).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
}

// unknown reports whether the server does not know the script.
func (claimScript) unknown(answer rueidis.RedisResult) bool {
	reply, ok := rueidis.IsRedisErr(answer.Error())
	return ok && reply.IsNoScript()
}
