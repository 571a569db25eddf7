package redisrow

import (
	"errors"
	"time"

	"github.com/redis/rueidis"
)

// ClientOption returns options for the client of a registry, from an address
// such as redis://user:password@host:6379/0, rediss:// for TLS. A beat is a few
// KiB every few seconds, so the client is small: no client-side cache, which
// nothing here asks; one connection in place of four; buffers of 32 KiB in place
// of 512; a ring of 256 commands. It gives up on a server that is silent for 2 s.
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
	option.ConnWriteTimeout = 2 * time.Second
	return option, nil
}
