//! The files of the page, as they were built from `page/src`.

/// A file: its name in the address, its type, its content.
pub(crate) struct Asset {
    pub(crate) name: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) content: &'static [u8],
}

/// All files. The first one is what the address itself names.
pub(crate) const ASSETS: [Asset; 3] = [
    Asset {
        name: "",
        content_type: "text/html; charset=utf-8",
        content: include_bytes!("../page/built/index.html"),
    },
    Asset {
        name: "page.js",
        content_type: "text/javascript; charset=utf-8",
        content: include_bytes!("../page/built/page.js"),
    },
    Asset {
        name: "page.css",
        content_type: "text/css; charset=utf-8",
        content: include_bytes!("../page/built/page.css"),
    },
];
