//! `tulpar demo NAME --data DIR` with data laid out as the real sets were published: file names, columns, sizes and kinds of
//! pictures are those of their documentation, and so is what is awkward about them. What is on the pictures is drawn here.

use super::programs::Place;
use super::workflows::{pretend_cargo, tulpar};
use image::{DynamicImage, GrayImage, ImageFormat, Luma, Rgb, RgbImage};
use serde_json::Value;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Starts the demo.
fn demo(tulpar: &Path, place: &Place, words: &str) -> Output {
    pretend_cargo(place);
    let mut command = Command::new(tulpar);
    command.arg("demo").args(words.split('|')).arg("--exemplars").arg(env!("CARGO_MANIFEST_DIR"));
    command.env("CARGO", place.path().join("cargo")).current_dir(place.path()).output().expect("it starts")
}

/// What the demo came to.
fn shown(tulpar: &Path, place: &Place, name: &str, data: &str, params: &str) -> Value {
    let said = demo(tulpar, place, &format!("{name}|--data|{data}{params}"));
    let err = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{err}");
    assert!(err.contains("results/report.html"), "{err}");
    place.json(&format!("tulpar-{name}/results/metrics.json"))
}

fn put(place: &Place, name: &str, bytes: &[u8]) {
    let path = place.path().join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, bytes).expect("it can be written");
}

fn encoded(picture: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.into().write_to(&mut bytes, format).expect("it can be encoded");
    bytes.into_inner()
}

/// A JPEG or PNG that was cut off on its way, as downloads are.
fn cut_off(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() / 3);
    bytes
}

/// The head of `training_solutions_rev1.csv` of the Galaxy Zoo challenge.
const VOTES: &str = "GalaxyID,Class1.1,Class1.2,Class1.3,Class2.1,Class2.2,Class3.1,Class3.2,Class4.1,Class4.2,Class5.1,\
Class5.2,Class5.3,Class5.4,Class6.1,Class6.2,Class7.1,Class7.2,Class7.3,Class8.1,Class8.2,Class8.3,Class8.4,Class8.5,\
Class8.6,Class8.7,Class9.1,Class9.2,Class9.3,Class10.1,Class10.2,Class10.3,Class11.1,Class11.2,Class11.3,Class11.4,\
Class11.5,Class11.6";

/// A galaxy of 424 by 424 pixels: an ellipse, with two arms if it is a spiral.
fn galaxy(number: u32, class: u32) -> RgbImage {
    let ratio = [0.95, 0.6, 0.3, 0.15, 0.8][class as usize];
    let angle = f64::from(number) * 0.7;
    RgbImage::from_fn(424, 424, |x, y| {
        let (x, y) = (f64::from(x) - 212.0, f64::from(y) - 212.0);
        let (along, across) = (x * angle.cos() + y * angle.sin(), (y * angle.cos() - x * angle.sin()) / ratio);
        let far = along.hypot(across) / 40.0;
        let arm = if class == 4 { 0.5 + 0.5 * (2.0 * (across.atan2(along) - 3.0 * far)).cos() } else { 1.0 };
        let light = (255.0 * (-far).exp() * arm) as u8;
        Rgb([light, light, (f64::from(light) * 0.8) as u8])
    })
}

/// Shares of votes in the order of the columns; only those that decide about a class are not zero.
fn votes(class: u32, clear: bool) -> Vec<f64> {
    let sure = if clear { 0.93 } else { 0.4 };
    let columns: Vec<&str> = VOTES.split(',').skip(1).collect();
    let mut votes = vec![0.0; columns.len()];
    let mut say = |name: &str, share: f64| votes[columns.iter().position(|it| *it == name).expect("a column")] = share;
    match class {
        0..3 => {
            say("Class1.1", sure);
            say(&format!("Class7.{}", class + 1), sure);
        }
        3 => ["Class1.2", "Class2.1"].into_iter().for_each(|name| say(name, sure)),
        _ => ["Class1.2", "Class2.2", "Class4.1"].into_iter().for_each(|name| say(name, sure)),
    }
    votes
}

#[test]
fn galaxies_of_the_published_challenge_are_learnt_from_as_they_come() {
    let Some(tulpar) = tulpar() else { return };
    let place = Place::new();
    let mut table = format!("{VOTES}\r\n");
    for number in 0..120 {
        let (id, class) = (100_008 + number * 15, number % 5);
        // One in six divides opinions, and is left out.
        let votes: Vec<String> = votes(class, number % 6 != 5).iter().map(ToString::to_string).collect();
        table += &format!("{id},{}\r\n", votes.join(","));
        let jpeg = encoded(galaxy(number, class), ImageFormat::Jpeg);
        let jpeg = if number == 31 { cut_off(jpeg) } else { jpeg };
        // A row whose picture was never downloaded.
        if number != 62 {
            put(&place, &format!("zoo/images_training_rev1/{id}.jpg"), &jpeg);
        }
    }
    put(&place, "zoo/images_training_rev1/.DS_Store", b"\0\0\0\x01Bud1");
    put(&place, "zoo/training_solutions_rev1.csv", table.as_bytes());
    let metrics = shown(&tulpar, &place, "galaxy", "zoo", "|-p|epochs=2|-p|limit=90");
    // 100 are clear and one of these has no picture; of 90, 18 in each class, three or four are held out.
    let held_out = metrics["held_out"].as_u64().expect("a number");
    assert!((15..=20).contains(&held_out), "{metrics}");
    let data = std::fs::read_link(place.path().join("tulpar-galaxy/data")).expect("a link");
    assert!(data.ends_with("zoo"), "the pictures were copied to {data:?}");
}

/// An X-ray with two bright lungs, and their mask.
fn chest(number: u32, width: u32, height: u32) -> (GrayImage, GrayImage) {
    let inside = |x: u32, y: u32| {
        let (x, y) = (f64::from(x) / f64::from(width), f64::from(y) / f64::from(height));
        [0.3, 0.7].iter().any(|middle| ((x - middle) / 0.14).hypot((y - 0.5) / 0.3) < 1.0)
    };
    let xray = GrayImage::from_fn(width, height, |x, y| {
        Luma([if inside(x, y) { 60 } else { 170 } + ((x / 7 + y / 5 + number) % 13) as u8])
    });
    (xray, GrayImage::from_fn(width, height, |x, y| Luma([if inside(x, y) { 255 } else { 0 }])))
}

#[test]
fn xrays_of_both_published_collections_are_found_with_their_masks() {
    let Some(tulpar) = tulpar() else { return };
    let place = Place::new();
    let folder = "Lung Segmentation";
    for number in 1..=24 {
        let name = format!("CHNCXR_{number:04}_{}", number % 2);
        // The first ones have their published size; all of them would take a minute.
        let (width, height) = if number <= 2 { (3000, 2919) } else { (300 + number, 280) };
        let (xray, mask) = chest(number, width, height);
        let png = match number % 4 {
            0 => encoded(xray, ImageFormat::Png),
            1 => encoded(DynamicImage::from(xray).to_rgb8(), ImageFormat::Png),
            2 => encoded(DynamicImage::from(xray).to_rgba8(), ImageFormat::Png),
            _ => encoded(DynamicImage::from(xray).to_luma16(), ImageFormat::Png),
        };
        let png = if number == 9 { cut_off(png) } else { png };
        put(&place, &format!("{folder}/CXR_png/{name}.png"), &png);
        // Nobody drew a mask for every X-ray of this collection.
        if number % 6 != 0 {
            put(&place, &format!("{folder}/masks/{name}_mask.png"), &encoded(mask, ImageFormat::Png));
        }
        put(&place, &format!("{folder}/ClinicalReadings/{name}.txt"), b"male 45yrs\r\nnormal\r\n");
    }
    for number in 1..=10 {
        let name = format!("MCUCXR_{number:04}_0.png");
        let (xray, mask) = chest(number, 402, 489);
        put(&place, &format!("{folder}/CXR_png/{name}"), &encoded(xray, ImageFormat::Png));
        put(&place, &format!("{folder}/masks/{name}"), &encoded(mask, ImageFormat::Png));
    }
    put(&place, &format!("{folder}/NLM-MontgomeryCXRSet-ReadMe.pdf"), b"%PDF-1.4");
    // People give the folder that they unpacked into.
    let said = demo(&tulpar, &place, "lung|--data|.");
    let err = String::from_utf8_lossy(&said.stderr);
    assert!(err.contains("CXR_png/ is not there: a folder was expected"), "{err}");
    assert!(err.contains("Lung Segmentation: give that folder"), "{err}");
    let metrics = shown(&tulpar, &place, "lung", folder, "|-p|epochs=2|-p|trials=1");
    // 30 pairs, of which one X-ray is damaged.
    let held_out = metrics["held_out"].as_u64().expect("a number");
    assert!((5..=6).contains(&held_out), "{metrics}");
}

const MESSAGES: [&str; 6] = [
    "RT @RedCross: Bridge down near #Houston, 3 people missing – call 911 https://t.co/Ab1",
    "¡Inundación en Texas! Niños evacuados, ayuda urgente 🙏🙏 https://t.co/niño",
    "ශ්‍රී ලංකාව flood victims need water and medicine",
    "\"Love\" this photo… so beautiful 😍😍😍 #sunset",
    "“My new shoes” arrived today!!! lol\u{2028}happy",
    "Watching tv with my cat &amp; coffee ☕️",
];

/// Tables, pictures and vectors as CrisisMMD 2.0 and GloVe have them.
fn crisis(place: &Place) -> usize {
    let words = "bridge houston people missing call inundación texas niños evacuados ayuda urgente flood victims need \
        water medicine love photo beautiful sunset new shoes arrived today happy watching tv cat coffee <user> 😍";
    let mut vectors: Vec<u8> = Vec::new();
    for (number, word) in words.split_whitespace().enumerate() {
        let numbers = (0..200).map(|at| format!(" {:.5}", ((number * 31 + at * 7) % 97) as f64 / 97.0 - 0.5));
        vectors.extend(word.bytes().chain(numbers.collect::<String>().bytes()).chain(*b"\n"));
    }
    // What people typed is not always text.
    vectors.extend(b"\xff\xfe\x85 0.1 0.2\n");
    put(place, "CrisisMMD_v2.0/glove.twitter.27B.200d.txt", &vectors);
    let columns = "event_name\ttweet_id\timage_id\ttweet_text\timage\tlabel\tlabel_text\tlabel_image\tlabel_text_image";
    let mut number = 0u64;
    let mut held_out = 0;
    for (split, count, end) in [("train", 60, "\n"), ("dev", 24, "\r\n"), ("test", 24, "\n")] {
        let mut table = format!("{columns}{end}");
        for at in 0..count {
            number += 1;
            let text = MESSAGES[at % MESSAGES.len()];
            let label = if at % MESSAGES.len() < 3 { "informative" } else { "not_informative" };
            let id = 917_791_044_158_185_000 + number;
            let (event, day) = [("california_wildfires", "10_10_2017"), ("srilanka_floods", "31_5_2017")][at % 2];
            // Some messages have two pictures, and so two rows.
            for picture in 0..1 + usize::from(at % 7 == 0) {
                let image = format!("data_image/{event}/{day}/{id}_{picture}.jpg");
                let cells = [event, &id.to_string(), &format!("{id}_{picture}"), text, &image, label, label, label];
                table += &format!("{}\tPositive{end}", cells.join("\t"));
                held_out += usize::from(split == "test");
                if (split, at) == ("test", 10) {
                    continue; // Twitter had deleted it.
                }
                let shade = if label == "informative" { 200 } else { 60 };
                let drawn = RgbImage::from_fn(96 + at as u32, 80, |x, y| Rgb([shade, (x % 50) as u8, (y % 60) as u8]));
                let bytes = match at % 5 {
                    // What is called .jpg is not always one.
                    3 => encoded(DynamicImage::from(drawn).to_rgba8(), ImageFormat::Png),
                    4 => encoded(DynamicImage::from(drawn).to_luma8(), ImageFormat::Jpeg),
                    _ => encoded(drawn, ImageFormat::Jpeg),
                };
                let bytes = if (split, at) == ("train", 20) { cut_off(bytes) } else { bytes };
                put(place, &format!("CrisisMMD_v2.0/{image}"), &bytes);
            }
        }
        let tables = "CrisisMMD_v2.0/crisismmd_datasplit_all";
        put(place, &format!("{tables}/task_informative_text_img_{split}.tsv"), table.as_bytes());
        put(place, &format!("{tables}/task_humanitarian_text_img_{split}.tsv"), columns.as_bytes());
    }
    held_out
}

#[test]
fn messages_of_the_published_set_are_judged_even_where_a_picture_is_gone() {
    let Some(tulpar) = tulpar() else { return };
    let place = Place::new();
    let held_out = crisis(&place);
    let metrics =
        shown(&tulpar, &place, "crisis", "CrisisMMD_v2.0", "|-p|trials=1|-p|text_epochs=12|-p|image_epochs=1");
    assert_eq!(metrics["held_out"], held_out);
    assert!(metrics["text_accuracy"].as_f64().is_some_and(|share| share > 0.9), "six texts are easily told: {metrics}");
}

#[test]
fn a_layout_that_is_not_the_published_one_is_refused_by_name() {
    let Some(tulpar) = tulpar() else { return };
    let place = Place::new();
    crisis(&place);
    let dev = "crisismmd_datasplit_all/task_informative_text_img_dev.tsv";
    let path: PathBuf = place.path().join("CrisisMMD_v2.0").join(dev);
    std::fs::rename(&path, path.with_file_name("dev.tsv")).expect("it is there");
    let said = demo(&tulpar, &place, "crisis|--data|CrisisMMD_v2.0");
    let err = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(2), "{err}");
    assert!(err.contains(&format!("{dev} is not there: a file was expected")), "{err}");
    assert!(err.contains("the published layout is crisismmd_datasplit_all/"), "{err}");
    // A table of the right name with other columns is refused by the step that reads it.
    put(&place, &format!("CrisisMMD_v2.0/{dev}"), b"tweet_id\ttext\n1\thelp\n");
    let tables = "CrisisMMD_v2.0/crisismmd_datasplit_all/task_informative_text_img_dev.tsv";
    let said = place
        .refused(&format!("crisis clean-text {tables} --vectors CrisisMMD_v2.0/glove.twitter.27B.200d.txt --out x"));
    assert!(said.contains("_dev.tsv is not what was expected: it has no column label"), "{said}");
}
