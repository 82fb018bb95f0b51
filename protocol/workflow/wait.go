package workflow

import "time"

// MaxWait is the longest wait that a definition may ask for: that of core.delay, or for the
// answer to a question. A longer one is more likely a mistaken unit than a wish.
const MaxWait = 366 * 24 * time.Hour
