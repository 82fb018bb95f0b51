package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"waybill.dev/waybill/services/eventlog/store"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate migrates the schema, one file of migrations after the other. PRAGMA user_version counts
// them. A file of a later version is treated as damaged: it is rebuilt from the log.
func migrate(ctx context.Context, conn *sql.Conn) error {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	var version int
	if err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version < 0 || version > len(files) {
		return fmt.Errorf("%w: schema version %d, this program knows %d", store.ErrDamaged, version, len(files))
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
