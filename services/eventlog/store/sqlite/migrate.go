package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"waybill.dev/waybill/services/eventlog/store"
)

//go:embed migrations/*.sql
var migrations embed.FS

// errNewer is the file of a later release. Like a damaged file it is rebuilt from the log.
var errNewer = errors.New("the read model is of a later release")

// migrate migrates the schema, one file of migrations after the other. PRAGMA user_version counts
// them. Errors: errNewer.
func migrate(ctx context.Context, conn *sql.Conn) error {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	var version int
	if err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version > len(files) {
		return fmt.Errorf("%w: schema version %d, this program knows up to %d", errNewer, version, len(files))
	}
	if version < 0 {
		return fmt.Errorf("%w: schema version %d", store.ErrDamaged, version)
	}
	for i, name := range files[version:] {
		text, err := migrations.ReadFile(name)
		if err != nil {
			return err
		}
		step := fmt.Sprintf("BEGIN IMMEDIATE; %s; PRAGMA user_version = %d; COMMIT", text, version+i+1)
		if _, err := conn.ExecContext(ctx, step); err != nil {
			return fmt.Errorf("migration %s: %w", name, misfit(err))
		}
	}
	return nil
}
