package acceptor

import (
	"io/fs"

	"waybill.dev/waybill/protocol/pack"
)

// Reload replaces the kinds of the folder and of the packs, for development. After an error nothing has
// changed.
func (s *Service) Reload(dir fs.FS, packs []*pack.Pack) error {
	cfg := s.cfg
	cfg.KindsDir, cfg.Packs = dir, packs
	fresh, err := loadKinds(cfg, s.log)
	if err != nil {
		return err
	}
	s.registry.Replace(fresh)
	return nil
}
