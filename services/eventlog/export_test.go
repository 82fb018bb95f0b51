package eventlog

// Followers counts the open subscriptions.
func (s *Service) Followers() int64 { return s.hub.Subscriptions() }

// Lags counts the subscriptions that lost their queue.
func (s *Service) Lags() int64 { return s.hub.Lags() }

// Rebuild requests a rebuild, like a reader that finds damage.
func (s *Service) Rebuild(why error) { s.ingest.Rebuild(why) }

// Rebuilds counts the rebuilds.
func (s *Service) Rebuilds() int64 { return s.ingest.Stats().Rebuilds }

// ForgetViews drops the snapshots of ended runs, which are served without the store.
func (s *Service) ForgetViews() { s.views.clear() }

// Refused counts the frames that did not fit their run.
func (s *Service) Refused() int64 { return s.ingest.Stats().Refused }
