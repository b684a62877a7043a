//! The catalogues inside a DAX: where files lie, and what programs there are.

use super::decode::{Decoder, Stop};
use super::xml::Element;
use crate::pegasus::{PhysicalFile, Profiles, Transformation, TransformationName, TransformationSite};

impl Decoder<'_, '_> {
    fn place(&mut self, element: &Element) -> PhysicalFile {
        let pfn = self.need(element, &["url"]);
        PhysicalFile { site: element.get("site").unwrap_or("local").to_owned(), pfn }
    }

    pub(super) fn replica(&mut self, element: &Element) -> Result<(), Stop> {
        let name = self.need(element, &["name", "file"]);
        let mut places = Vec::new();
        self.children(|decoder, child| match child.name.as_str() {
            "pfn" => {
                places.push(decoder.place(&child));
                let mut none = Profiles::default();
                decoder.children(|decoder, inner| match inner.name.as_str() {
                    "profile" => decoder.profile(&inner, &mut none),
                    _ => decoder.unknown(&inner, "pfn"),
                })
            }
            "profile" => decoder.profile(&child, &mut Profiles::default()),
            "metadata" => decoder.skip(),
            _ => decoder.unknown(&child, "file"),
        })?;
        if !places.is_empty() {
            self.model.replicas.add(&name, places, true);
        }
        Ok(())
    }

    pub(super) fn name_of(&mut self, element: &Element) -> TransformationName {
        let own = |key: &str| element.get(key).filter(|value| !value.is_empty()).map(str::to_owned);
        TransformationName { namespace: own("namespace"), version: own("version"), name: self.need(element, &["name"]) }
    }

    fn transformation_named(&mut self, name: TransformationName) -> &mut Transformation {
        let all = &mut self.model.transformations;
        let number = *self.transformations.entry(name).or_insert_with_key(|name| {
            all.push(Transformation { name: name.clone(), ..Transformation::default() });
            all.len() - 1
        });
        &mut all[number]
    }

    pub(super) fn executable(&mut self, element: &Element) -> Result<(), Stop> {
        let name = self.name_of(element);
        let stageable = !self.truth(element, "installed", true);
        let mut read = Transformation::default();
        self.children(|decoder, child| match child.name.as_str() {
            "pfn" => {
                let place = decoder.place(&child);
                let mut profiles = Profiles::default();
                decoder.children(|decoder, inner| match inner.name.as_str() {
                    "profile" => decoder.profile(&inner, &mut profiles),
                    _ => decoder.unknown(&inner, "pfn"),
                })?;
                let site = TransformationSite { site: place.site, pfn: place.pfn, stageable, ..Default::default() };
                read.sites.push(TransformationSite { profiles, ..site });
                Ok(())
            }
            "profile" => decoder.profile(&child, &mut read.profiles),
            "metadata" => decoder.skip(),
            "invoke" => {
                read.hooks.extend(decoder.hook(&child)?);
                Ok(())
            }
            _ => decoder.unknown(&child, "executable"),
        })?;
        let known = self.transformation_named(name);
        known.sites.extend(read.sites);
        known.profiles.overlay(&read.profiles);
        known.hooks.extend(read.hooks);
        Ok(())
    }

    /// Programs and data that belong together. Their namespace and version are those of the whole, unless they say.
    pub(super) fn transformation(&mut self, element: &Element) -> Result<(), Stop> {
        let name = self.name_of(element);
        let (mut requires, mut data, mut hooks) = (Vec::new(), Vec::new(), Vec::new());
        self.children(|decoder, child| match child.name.as_str() {
            "uses" => {
                if decoder.truth(&child, "executable", true) {
                    let mut used = decoder.name_of(&child);
                    used.namespace = used.namespace.or_else(|| name.namespace.clone());
                    used.version = used.version.or_else(|| name.version.clone());
                    requires.push(used);
                } else {
                    let file = decoder.need(&child, &["name", "file"]);
                    data.push(decoder.file(&file));
                }
                decoder.skip()
            }
            "metadata" => decoder.skip(),
            "invoke" => {
                hooks.extend(decoder.hook(&child)?);
                Ok(())
            }
            _ => decoder.unknown(&child, "transformation"),
        })?;
        requires.retain(|used| *used != name);
        self.data_of.insert(name.clone(), data);
        let known = self.transformation_named(name);
        known.requires.extend(requires);
        known.hooks.extend(hooks);
        Ok(())
    }
}
