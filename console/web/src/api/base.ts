// The server writes its base path into the page, so one build works under every path.
const content = document.querySelector<HTMLMetaElement>('meta[name="waybill-base"]')?.content ?? "/";

/** The host's base path without a trailing slash: "" or "/a/b". */
export const basePath = content.replace(/\/+$/, "");

/** The console's path. */
export const consolePath = `${basePath}/console`;

/** The host's URL, for requests and copied commands. */
export const hostURL = location.origin + basePath;
