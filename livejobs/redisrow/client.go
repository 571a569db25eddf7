package redisrow

import (
	"errors"
	"net"
	"time"

	"github.com/redis/rueidis"
)

// ClientOption returns options for the client of a registry, from an address
// such as redis://user:password@host:6379/0, rediss:// for TLS. A beat is a few
// KiB every few seconds, so the client is small: no client-side cache, which
// nothing here asks; one connection in place of four; buffers of 32 KiB in place
// of 512; a ring of 256 commands; no PING of its own, so that nothing runs or is
// sent between two beats, and a goroutine that pipelines only starts when several
// callers share the client. It gives up on a server that is silent for 2 s.
func ClientOption(url string) (rueidis.ClientOption, error) {
	option, err := rueidis.ParseURL(url)
	if err != nil {
		// Not wrapped: it quotes the address, which holds a password.
		return rueidis.ClientOption{}, errors.New("read the address of a Redis server: want redis://user:password@host:port/number")
	}
	option.DisableCache = true
	option.PipelineMultiplex = -1
	option.BlockingPoolSize = 1
	option.RingScaleEachConn = 8
	option.ReadBufferEachConn = 32 << 10
	option.WriteBufferEachConn = 32 << 10
	option.Dialer.Timeout = 2 * time.Second
	// The client would send a PING every KeepAlive; the kernel's probes do.
	option.Dialer.KeepAlive = -1
	option.Dialer.KeepAliveConfig = net.KeepAliveConfig{Enable: true}
	option.ConnWriteTimeout = 2 * time.Second
	return option, nil
}
