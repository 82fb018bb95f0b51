package acceptor

import (
	"io/fs"

	"waybill.dev/waybill/protocol/pack"
)

// PrepareReload reads the kinds of the folder and of the packs again, for development. apply replaces the
// present ones; before, and after an error, nothing has changed.
func (s *Service) PrepareReload(dir fs.FS, packs []*pack.Pack) (apply func(), err error) {
	cfg := s.cfg
	cfg.KindsDir, cfg.Packs = dir, packs
	fresh, err := loadKinds(cfg, s.log)
	if err != nil {
		return nil, err
	}
	return func() { s.registry.Replace(fresh) }, nil
}
