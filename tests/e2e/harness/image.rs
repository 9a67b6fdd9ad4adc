//! Images that tests upload, and the forms in which they do so.

/// A JPEG image of one pixel. What is compressed is `pixels`, and its Exif data are `exif`, if there are any.
pub(crate) fn jpeg(pixels: &str, exif: &str) -> Vec<u8> {
    let mut image = b"\xff\xd8".to_vec();
    if !exif.is_empty() {
        let content = [b"Exif\0\0", exif.as_bytes()].concat();
        let length = u16::try_from(content.len() + 2).unwrap();
        image.extend(b"\xff\xe1");
        image.extend(length.to_be_bytes());
        image.extend(content);
    }
    image.extend(b"\xff\xc0\0\x0b\x08\0\x01\0\x01\x01\x01\x11\0");
    image.extend(b"\xff\xda\0\x08\x01\x01\0\0\x3f\0");
    image.extend(pixels.as_bytes());
    image.extend(b"\xff\xd9");
    image
}

/// A WebP image of one pixel, which is a text.
pub(crate) const WEBP: &str = "RIFF\x12\0\0\0WEBPVP8L\x06\0\0\0/\0\0\0\0\0";

/// The media type of [`form`].
pub(crate) const FORM: &str = "multipart/form-data; boundary=boundary";

/// A form with a file, as the courier's app sends it.
pub(crate) fn form(file: &[u8]) -> Vec<u8> {
    let head = "--boundary\r\nContent-Disposition: form-data; name=\"file\"; filename=\"proof.jpg\"\r\n\
                Content-Type: image/jpeg\r\n\r\n";
    [head.as_bytes(), file, b"\r\n--boundary--\r\n"].concat()
}
