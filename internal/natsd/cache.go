package natsd

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// DefaultCacheTime is how long the server keeps blocks in memory by default.
const DefaultCacheTime = 10 * time.Second

// errUnknownServer: this version of the server has other fields.
var errUnknownServer = errors.New("unknown fields of the NATS server")

// limitCache applies Config.CacheTime to a stream of the running server, once for each of both. The
// server has no option for it (docs/adr/0050). If that fails, the server's own time applies.
func (s *Server) limitCache(stream string) {
	if s.cfg.CacheTime <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.srv == nil || s.limited[stream] == s.srv {
		return
	}
	s.limited[stream] = s.srv
	if err := setCacheTime(s.srv, stream, s.cfg.CacheTime); err != nil {
		s.cfg.Log.Warn("written blocks stay in memory for the default time of the NATS server", "stream", stream, "error", err)
	}
}

// setCacheTime sets how long new blocks of a stream stay in memory after their last use.
func setCacheTime(srv *server.Server, stream string, d time.Duration) error {
	store, err := storeOf(srv, stream)
	if err != nil {
		return err
	}
	mu, err := field[sync.RWMutex](store, "mu")
	if err != nil {
		return err
	}
	cfg, err := field[server.FileStoreConfig](store, "fcfg")
	if err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	cfg.CacheExpire = d
	return nil
}

// storeOf returns the store of a stream of the host's account.
func storeOf(srv *server.Server, stream string) (reflect.Value, error) {
	none := reflect.Value{}
	account := reflect.ValueOf(srv.GlobalAccount()).Elem().FieldByName("js")
	if !account.IsValid() {
		return none, fmt.Errorf("%w: js of an account", errUnknownServer)
	}
	mu, err := field[sync.RWMutex](account, "mu")
	if err != nil {
		return none, err
	}
	mu.RLock()
	defer mu.RUnlock()
	streams := account.Elem().FieldByName("streams")
	if !streams.IsValid() || streams.Kind() != reflect.Map {
		return none, fmt.Errorf("%w: streams of an account", errUnknownServer)
	}
	streams = reflect.NewAt(streams.Type(), streams.Addr().UnsafePointer()).Elem()
	entry := streams.MapIndex(reflect.ValueOf(stream))
	if !entry.IsValid() {
		return none, fmt.Errorf("no stream %s", stream)
	}
	s, ok := entry.Interface().(interface{ Store() server.StreamStore })
	if !ok {
		return none, fmt.Errorf("%w: Store of %s", errUnknownServer, entry.Type())
	}
	return reflect.ValueOf(s.Store()), nil
}

// field returns an unexported field of the struct that v points to.
func field[T any](v reflect.Value, name string) (*T, error) {
	if v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct {
		if f := v.Elem().FieldByName(name); f.IsValid() && f.Type() == reflect.TypeFor[T]() {
			return (*T)(f.Addr().UnsafePointer()), nil
		}
	}
	return nil, fmt.Errorf("%w: %s of %s", errUnknownServer, name, v.Type())
}
